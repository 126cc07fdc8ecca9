
-- One row for each file. A place is a file system, whoever lists it: by its UUID, else by the
-- server and path that are mounted, else what one machine knows of it. 'complete': the trailer is
-- there and has as many entries as the file; 'whole': not a part of a tree; 'is_known': of a
-- schema that these questions know. 'recorded_at' is when it was made or updated last, and
-- 'moment' the same for comparisons: none if it is no time in UTC, or one that is still to come.
-- 'tree' is the same for all manifests of one root of one machine in one place.
CREATE OR REPLACE TEMP {{stored}} manifests AS
WITH counted AS (
  SELECT manifest, is_backup,
    count(*) AS lines,
    count(*) FILTER (WHERE type = 'entry') AS listed,
    count(*) FILTER (WHERE type = 'header') AS headers,
    count(*) FILTER (WHERE type = 'trailer') AS trailers,
    max(schema) FILTER (WHERE type = 'header') AS schema,
    max(host) FILTER (WHERE type = 'header') AS host,
    max(machine) FILTER (WHERE type = 'header' AND machine NOT IN ('', 'uninitialized')) AS machine,
    max(root) FILTER (WHERE type = 'header') AS root,
    max(root_b64) FILTER (WHERE type = 'header') AS root_b64,
    max(created_at) FILTER (WHERE type = 'header') AS created_at,
    max(updated_at) FILTER (WHERE type = 'header') AS updated_at,
    max(options) FILTER (WHERE type = 'header') AS options,
    max(algorithm) FILTER (WHERE type = 'header') AS algorithm,
    max(fs_uuid) FILTER (WHERE type = 'header') AS fs_uuid,
    max(mount_source) FILTER (WHERE type = 'header') AS mount_source,
    max(scope) FILTER (WHERE type = 'header') AS scope,
    max(shard) FILTER (WHERE type = 'header') AS shard,
    max(entries) FILTER (WHERE type = 'trailer') AS entries,
    max(files) FILTER (WHERE type = 'trailer') AS files,
    max(bytes) FILTER (WHERE type = 'trailer') AS bytes,
    max(sha256) FILTER (WHERE type = 'trailer') AS sha256,
    max(ctime_ns) FILTER (WHERE type = 'entry') AS latest_ctime_ns,
    count(*) FILTER (WHERE type = 'entry' AND error IS NOT NULL AND digest IS NULL) AS unread,
    count(*) FILTER (WHERE type = 'entry' AND digest IS NOT NULL AND mode IS NULL) AS bare,
    count(*) FILTER (WHERE type = 'entry' AND found = 'damaged') AS damaged,
    count(*) FILTER (WHERE type = 'entry' AND found <> 'damaged') AS unreadable,
    count(*) FILTER (WHERE type = 'entry' AND found IS NULL AND unseen_at IS NOT NULL) AS unseen
  FROM manifest_lines GROUP BY manifest, is_backup
), named AS (
  SELECT counted.*, coalesce(counted.manifest, f.manifest) AS name,
    coalesce(counted.is_backup, f.is_backup) AS for_backup, coalesce(f.named, 1) AS named,
    CASE WHEN updated_at > created_at THEN updated_at ELSE created_at END AS recorded_at
  FROM counted FULL OUTER JOIN manifest_files f
    ON {{file_name}}
      = f.manifest AND counted.is_backup = f.is_backup
), placed AS (
  SELECT name AS manifest, for_backup AS is_backup,
    CASE WHEN fs_uuid IS NOT NULL THEN concat('uuid:', fs_uuid)
      WHEN {{mount_source_is_shared}}
        THEN concat('mount:', regexp_replace(mount_source, '/+$', ''))
      ELSE concat('machine:', coalesce(machine, host, ''), ':',
        coalesce(mount_source, root, name))
      END AS place,
    host, machine, coalesce(machine, concat('host:', coalesce(host, ''))) AS machine_key,
    CASE WHEN root_b64 IS NOT NULL THEN concat('/b64/', root_b64)
      ELSE coalesce(root, concat('list:', name)) END AS root,
    created_at, recorded_at,
    CASE WHEN regexp_replace(recorded_at,
        '{{time}}', '') = ''
      AND regexp_replace(recorded_at, 'Z$', '') <=
        {{soon}}
      THEN regexp_replace(recorded_at, 'Z$', '') END AS moment,
    algorithm, options, fs_uuid, mount_source, named,
    coalesce(headers = 1 AND trailers = 1 AND listed = entries AND lines = listed + 2, false)
      AS complete,
    coalesce(scope, 'null') = 'null' AND coalesce(shard, 'null') = 'null' AS whole,
    coalesce(schema, 0) = 1 AS is_known,
    coalesce(entries, listed, 0) AS entries, files, bytes, sha256, latest_ctime_ns,
    unread, bare, damaged, unreadable, unseen
  FROM named
)
SELECT placed.*, md5(concat(length(machine_key), ' ', length(coalesce(host, '?')), ' ', length(root),
    machine_key, coalesce(host, '?'), root, place)) AS tree,
  row_number() OVER (PARTITION BY is_backup, sha256, machine, host, root, created_at
    ORDER BY manifest) AS copy
FROM placed;
{{cache}}
-- What of each tree is the newest, and which of these can be compared: those with the digests that
-- are asked for, or that most have.
CREATE OR REPLACE TEMP VIEW ranked_manifests AS
WITH usable AS (
  SELECT *, row_number() OVER latest AS age, lead(manifest) OVER latest AS before,
    lead(moment) OVER latest AS moment_before, lead(options) OVER latest AS options_before
  FROM manifests WHERE complete AND whole AND is_known AND copy = 1
  WINDOW latest AS (PARTITION BY is_backup, tree
    ORDER BY moment DESC NULLS LAST, latest_ctime_ns DESC NULLS LAST, manifest DESC)
), common AS (
  SELECT algorithm FROM usable WHERE age = 1 GROUP BY algorithm
  ORDER BY count(*) DESC, sum(entries) DESC, algorithm LIMIT 1
)
SELECT usable.*,
  usable.algorithm = coalesce({{algorithm}}, (SELECT max(algorithm) FROM common)) AS compared
FROM usable;

-- The entries of all that can be compared. What lies below a mount point is of the place that is
-- mounted there. Joins use path_key: 'path' has other letters for what is no text. 'digest' is of
-- content that is there; 'known_digest' also of what is damaged, unreadable or on a disk that was
-- not mounted, where the manifest keeps what it last knew.
CREATE OR REPLACE TEMP VIEW entries AS
WITH mounted AS (
  SELECT manifest, dev, max(fs_uuid) AS fs_uuid, max(mount) AS mount, min(path) AS path
  FROM manifest_lines
  WHERE type = 'entry' AND mount IS NOT NULL AND dev IS NOT NULL GROUP BY manifest, dev
)
SELECT m.manifest, m.is_backup, m.age, m.tree,
  CASE WHEN coalesce(l.dev, 0) = 0 OR d.dev IS NULL THEN m.place
    WHEN d.fs_uuid IS NOT NULL THEN concat('uuid:', d.fs_uuid)
    WHEN {{mount_is_shared}}
      THEN concat('mount:', regexp_replace(d.mount, '/+$', ''))
    ELSE concat('machine:', coalesce(m.machine, m.host, ''), ':',
      CASE WHEN d.mount = '' THEN concat(m.root, '/', d.path) ELSE d.mount END) END AS place,
  m.host, m.machine_key, m.root, m.created_at, m.recorded_at, m.moment,
  CASE WHEN l.path_b64 IS NULL THEN l.path ELSE concat('/b64/', l.path_b64) END AS path_key,
  l.path, l.kind, l.size, l.mode, l.uid, l.gid, l.mtime_ns, l.ctime_ns,
  coalesce(l.dev, 0) AS dev, l.ino, l.nlink,
  CASE WHEN l.found IS NULL AND l.unseen_at IS NULL THEN l.digest END AS digest,
  l.digest AS known_digest, l.target, l.verified_at, l.tried_at, l.unseen_at, l.found, l.error
FROM manifest_lines l JOIN ranked_manifests m
  ON l.manifest = m.manifest AND l.is_backup = m.is_backup
LEFT JOIN mounted d ON l.manifest = d.manifest AND l.dev = d.dev
WHERE l.type = 'entry' AND m.compared;
