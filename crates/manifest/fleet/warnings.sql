
-- What is in no answer, and what some host says that another may not believe. Manifests are claims
-- of the hosts that have made them.
CREATE OR REPLACE TEMP VIEW warnings AS
WITH newest AS (
  SELECT * FROM ranked_manifests WHERE age = 1
), before AS (
  SELECT is_backup, tree, options, moment FROM ranked_manifests WHERE age = 2
), counts AS (
  SELECT unread AS number, 'entries could not be read: in no answer' AS what,
    manifest, host, root FROM newest
  UNION ALL
  SELECT damaged, 'entries are known to be damaged: no copies', manifest, host, root FROM newest
  UNION ALL
  SELECT unreadable, 'entries could not be read again: no copies', manifest, host, root FROM newest
  UNION ALL
  SELECT unseen, 'entries are kept of what was not mounted, or not to be seen: no copies',
    manifest, host, root FROM newest
  UNION ALL
  SELECT bare, 'entries have no metadata (imported?): they count as in a place of their own',
    manifest, host, root FROM newest
)
SELECT 'incomplete: in no answer' AS warning, manifest, host, root FROM manifests
WHERE NOT complete AND named = 1
UNION ALL
SELECT 'named more than once: in no answer', manifest, host, root FROM manifests
WHERE NOT complete AND named > 1
UNION ALL
SELECT 'a part of a tree: in no answer before bc integrity merge', manifest, host, root
FROM manifests WHERE complete AND NOT whole
UNION ALL
SELECT 'another schema: in no answer', manifest, host, root
FROM manifests WHERE complete AND whole AND NOT is_known
UNION ALL
SELECT 'a copy of another: counts once', manifest, host, root
FROM manifests WHERE complete AND whole AND is_known AND copy > 1
UNION ALL
SELECT concat('other digests (', coalesce(algorithm, '?'), '): in no answer'), manifest, host, root
FROM ranked_manifests WHERE NOT compared
UNION ALL
SELECT concat(CAST(number AS VARCHAR(20)), ' ', what), manifest, host, root
FROM counts WHERE number > 0
UNION ALL
SELECT 'made at no time in UTC, or at one still to come: counts as the oldest', manifest, host, root
FROM ranked_manifests WHERE moment IS NULL
UNION ALL
SELECT 'as old as another: which is newer is a guess', newest.manifest, newest.host, newest.root
FROM newest JOIN before ON newest.is_backup = before.is_backup AND newest.tree = before.tree
WHERE coalesce(newest.moment, '') = coalesce(before.moment, '')
UNION ALL
SELECT 'other options than the manifest before: what they leave out looks lost',
  newest.manifest, newest.host, newest.root
FROM newest JOIN before ON newest.is_backup = before.is_backup AND newest.tree = before.tree
WHERE coalesce(newest.options, '') <> coalesce(before.options, '')
UNION ALL
SELECT 'no machine id: older ones are told by the name of the host alone',
  newest.manifest, newest.host, newest.root
FROM newest JOIN before ON newest.is_backup = before.is_backup AND newest.tree = before.tree
WHERE newest.machine IS NULL
UNION ALL
SELECT 'several machines have this host name', manifest, host, root FROM manifests
WHERE host IN (SELECT host FROM manifests GROUP BY host HAVING count(DISTINCT machine_key) > 1)
UNION ALL
SELECT 'several machines list this file system: shared, moved or cloned', manifest, host, root
FROM ranked_manifests
WHERE fs_uuid IN (SELECT fs_uuid FROM ranked_manifests
  GROUP BY fs_uuid HAVING count(DISTINCT machine_key) > 1)
UNION ALL
SELECT 'one machine and root under several host names or in several places: each counts',
  m.manifest, m.host, m.root
FROM ranked_manifests m JOIN (
  SELECT machine_key, root FROM ranked_manifests GROUP BY machine_key, root
  HAVING count(DISTINCT tree) > 1
) twice ON m.machine_key = twice.machine_key AND m.root = twice.root
UNION ALL
SELECT 'one machine and root in several directories', m.manifest, m.host, m.root
FROM manifests m JOIN (
  SELECT machine_key, root FROM manifests WHERE NOT is_backup GROUP BY machine_key, root
  HAVING count(DISTINCT regexp_replace(manifest, '[^/]*$', '')) > 1
) twice ON m.machine_key = twice.machine_key AND m.root = twice.root AND NOT m.is_backup;
