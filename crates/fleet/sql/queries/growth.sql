-- How much more each tree holds than at an earlier time: the last manifests up to both times. A
-- tree that has none before has no numbers. Several names of one inode are one file.
WITH starts AS (
  SELECT *, row_number() OVER (PARTITION BY tree ORDER BY age) AS nth
  FROM ranked_manifests WHERE compared AND substr(moment, 1, 19) <= {{from}}
), ends AS (
  SELECT *, row_number() OVER (PARTITION BY tree ORDER BY age) AS nth
  FROM ranked_manifests WHERE compared AND substr(moment, 1, 19) <= {{to}}
), further AS (
  SELECT manifest, sum(names - 1) AS files, sum((names - 1) * size) AS bytes FROM (
    SELECT manifest, dev, ino, count(*) AS names, CAST(max(size) AS DECIMAL(38, 0)) AS size
    FROM entries WHERE kind = 'file' AND nlink > 1 GROUP BY manifest, dev, ino
  ) AS inodes GROUP BY manifest
), held AS (
  SELECT m.manifest,
    CAST(m.files AS DECIMAL(38, 0)) - CAST(coalesce(f.files, 0) AS DECIMAL(38, 0)) AS files,
    CAST(m.bytes AS DECIMAL(38, 0)) - CAST(coalesce(f.bytes, 0) AS DECIMAL(38, 0)) AS bytes
  FROM manifests m LEFT JOIN further f ON m.manifest = f.manifest
), chosen AS (
  SELECT tree, manifest, 1 AS is_end, host, root, place, recorded_at FROM ends WHERE nth = 1
  UNION ALL
  SELECT tree, manifest, 0 AS is_end, host, root, place, recorded_at FROM starts WHERE nth = 1
), sides AS (
  SELECT c.tree, c.is_end, c.host, c.root, c.place, c.recorded_at, h.files, h.bytes
  FROM chosen c JOIN held h ON c.manifest = h.manifest
)
SELECT max(CASE WHEN is_end = 1 THEN host END) AS host,
  max(CASE WHEN is_end = 1 THEN root END) AS root,
  max(CASE WHEN is_end = 1 THEN place END) AS place,
  max(CASE WHEN is_end = 0 THEN recorded_at END) AS since,
  max(CASE WHEN is_end = 1 THEN recorded_at END) AS until,
  max(CASE WHEN is_end = 1 THEN files END) - max(CASE WHEN is_end = 0 THEN files END) AS files,
  max(CASE WHEN is_end = 1 THEN bytes END) - max(CASE WHEN is_end = 0 THEN bytes END) AS bytes
FROM sides
GROUP BY tree
HAVING max(is_end) = 1
ORDER BY bytes DESC NULLS LAST, host, root{{limit}};
