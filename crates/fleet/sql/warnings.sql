
-- What is in no answer, and what some host says that another may not believe. Manifests are claims
-- of the hosts that have made them.
CREATE OR REPLACE TEMP VIEW warnings AS
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
SELECT concat(CAST(unread AS VARCHAR(20)),
  ' entries could not be read: in no answer'), manifest, host, root
FROM ranked_manifests WHERE age = 1 AND unread > 0
UNION ALL
SELECT concat(CAST(damaged AS VARCHAR(20)),
  ' entries are known to be damaged: no copies'), manifest, host, root
FROM ranked_manifests WHERE age = 1 AND damaged > 0
UNION ALL
SELECT concat(CAST(unreadable AS VARCHAR(20)),
  ' entries could not be read again: no copies'), manifest, host, root
FROM ranked_manifests WHERE age = 1 AND unreadable > 0
UNION ALL
SELECT concat(CAST(unseen AS VARCHAR(20)),
  ' entries are kept of what was not mounted, or not to be seen: no copies'), manifest, host, root
FROM ranked_manifests WHERE age = 1 AND unseen > 0
UNION ALL
SELECT concat(CAST(bare AS VARCHAR(20)),
  ' entries have no metadata (imported?): they count as in a place of their own'), manifest, host, root
FROM ranked_manifests WHERE age = 1 AND bare > 0
UNION ALL
SELECT 'made at no time in UTC, or at one still to come: counts as the oldest', manifest, host, root
FROM ranked_manifests WHERE moment IS NULL
UNION ALL
SELECT 'as old as another: which is newer is a guess', manifest, host, root
FROM ranked_manifests
WHERE age = 1 AND before IS NOT NULL AND coalesce(moment, '') = coalesce(moment_before, '')
UNION ALL
SELECT 'other options than the manifest before: what they leave out looks lost',
  manifest, host, root
FROM ranked_manifests
WHERE age = 1 AND before IS NOT NULL AND coalesce(options, '') <> coalesce(options_before, '')
UNION ALL
SELECT 'no machine id: older ones are told by the name of the host alone', manifest, host, root
FROM ranked_manifests WHERE age = 1 AND before IS NOT NULL AND machine IS NULL
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
