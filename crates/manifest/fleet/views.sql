
-- One row for each file. A place is a file system, whoever lists it: by its UUID, else by the
-- server and path that are mounted, else what one machine knows of it. 'complete': the trailer is
-- there and has as many entries as the file; 'whole': not a part of a tree; 'is_known': of a
-- schema that these questions know.
CREATE OR REPLACE TEMP {{stored}} manifests AS
WITH counted AS (
  SELECT manifest, is_backup,
    count(*) AS lines,
    count(*) FILTER (WHERE type = 'entry') AS found,
    count(*) FILTER (WHERE type = 'header') AS headers,
    count(*) FILTER (WHERE type = 'trailer') AS trailers,
    max(schema) FILTER (WHERE type = 'header') AS schema,
    max(host) FILTER (WHERE type = 'header') AS host,
    max(machine) FILTER (WHERE type = 'header') AS machine,
    max(root) FILTER (WHERE type = 'header') AS root,
    max(root_b64) FILTER (WHERE type = 'header') AS root_b64,
    max(created_at) FILTER (WHERE type = 'header') AS created_at,
    max(algorithm) FILTER (WHERE type = 'header') AS algorithm,
    max(fs_uuid) FILTER (WHERE type = 'header') AS fs_uuid,
    max(mount_source) FILTER (WHERE type = 'header') AS mount_source,
    max(scope) FILTER (WHERE type = 'header') AS scope,
    max(shard) FILTER (WHERE type = 'header') AS shard,
    max(entries) FILTER (WHERE type = 'trailer') AS entries,
    max(files) FILTER (WHERE type = 'trailer') AS files,
    max(bytes) FILTER (WHERE type = 'trailer') AS bytes,
    max(errors) FILTER (WHERE type = 'trailer') AS errors,
    max(sha256) FILTER (WHERE type = 'trailer') AS sha256
  FROM manifest_lines GROUP BY manifest, is_backup
)
SELECT manifest, is_backup,
  CASE WHEN fs_uuid IS NOT NULL THEN concat('uuid:', fs_uuid)
    WHEN mount_source LIKE '%:/%' OR mount_source LIKE '//%' THEN concat('mount:', mount_source)
    ELSE concat('machine:', coalesce(machine, host, ''), ':',
      coalesce(mount_source, root, manifest))
    END AS place,
  host, machine, coalesce(machine, concat('host:', coalesce(host, ''))) AS machine_key,
  CASE WHEN root_b64 IS NOT NULL THEN concat('/b64/', root_b64)
    ELSE coalesce(root, concat('list:', manifest)) END AS root,
  created_at, algorithm,
  headers = 1 AND trailers = 1 AND found = entries AND lines = found + 2 AS complete,
  coalesce(scope, 'null') = 'null' AND coalesce(shard, 'null') = 'null' AS whole,
  coalesce(schema, 0) = 1 AS is_known,
  coalesce(entries, found) AS entries, files, bytes, errors, sha256,
  row_number() OVER (PARTITION BY is_backup, sha256, machine, host, root, created_at
    ORDER BY manifest) AS copy
FROM counted;
{{cache}}
-- What of each machine and root is the newest, and which of these can be compared: those with the
-- digests that are asked for, or that most have.
CREATE OR REPLACE TEMP VIEW ranked_manifests AS
WITH usable AS (
  SELECT *, row_number() OVER (PARTITION BY is_backup, machine_key, root
    ORDER BY substr(created_at, 1, 19) DESC, created_at DESC, manifest DESC) AS age
  FROM manifests WHERE complete AND whole AND is_known AND copy = 1
), common AS (
  SELECT algorithm FROM usable WHERE age = 1 GROUP BY algorithm
  ORDER BY count(*) DESC, sum(entries) DESC, algorithm LIMIT 1
)
SELECT usable.*,
  usable.algorithm = coalesce({{algorithm}}, (SELECT max(algorithm) FROM common)) AS compared
FROM usable;

-- The entries of all that can be compared. What lies below a mount point is of the place that is
-- mounted there. Joins use path_key: 'path' has other letters for what is no text.
CREATE OR REPLACE TEMP VIEW entries AS
WITH mounted AS (
  SELECT manifest, dev, max(fs_uuid) AS fs_uuid, max(mount) AS mount FROM manifest_lines
  WHERE type = 'entry' AND mount IS NOT NULL AND dev IS NOT NULL GROUP BY manifest, dev
)
SELECT m.manifest, m.is_backup, m.age,
  CASE WHEN coalesce(l.dev, 0) = 0 THEN m.place
    WHEN d.fs_uuid IS NOT NULL THEN concat('uuid:', d.fs_uuid)
    WHEN d.mount LIKE '%:/%' OR d.mount LIKE '//%' THEN concat('mount:', d.mount)
    ELSE concat(m.place, ':', CAST(l.dev AS VARCHAR(20)), ':', coalesce(d.mount, '')) END AS place,
  m.host, m.machine_key, m.root, m.created_at,
  CASE WHEN l.path_b64 IS NULL THEN l.path ELSE concat('/b64/', l.path_b64) END AS path_key,
  l.path, l.kind, l.size, l.mode, l.uid, l.gid, l.mtime_ns, l.ctime_ns, l.ino, l.nlink,
  l.digest, l.target, l.found, l.error
FROM manifest_lines l JOIN ranked_manifests m
  ON l.manifest = m.manifest AND l.is_backup = m.is_backup
LEFT JOIN mounted d ON l.manifest = d.manifest AND l.dev = d.dev
WHERE l.type = 'entry' AND m.compared;

-- What is in no answer, and what some host says that another may not believe. Manifests are claims
-- of the hosts that have made them.
CREATE OR REPLACE TEMP VIEW warnings AS
SELECT 'incomplete: in no answer' AS warning, manifest, host, root FROM manifests WHERE NOT complete
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
SELECT concat(CAST(errors AS VARCHAR(20)), ' entries could not be read: in no answer'),
  manifest, host, root
FROM ranked_manifests WHERE age = 1 AND errors > 0
UNION ALL
SELECT 'several machines have this host name', manifest, host, root FROM manifests
WHERE host IN (SELECT host FROM manifests GROUP BY host HAVING count(DISTINCT machine_key) > 1)
UNION ALL
SELECT 'one machine and root in several directories', m.manifest, m.host, m.root
FROM manifests m JOIN (
  SELECT machine_key, root FROM manifests WHERE NOT is_backup GROUP BY machine_key, root
  HAVING count(DISTINCT regexp_replace(manifest, '[^/]*$', '')) > 1
) twice ON m.machine_key = twice.machine_key AND m.root = twice.root AND NOT m.is_backup;
