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
), counted AS (
  SELECT m.manifest,
    CAST(m.files AS DECIMAL(38, 0)) - CAST(coalesce(f.files, 0) AS DECIMAL(38, 0)) AS files,
    CAST(m.bytes AS DECIMAL(38, 0)) - CAST(coalesce(f.bytes, 0) AS DECIMAL(38, 0)) AS bytes
  FROM manifests m LEFT JOIN further f ON m.manifest = f.manifest
)
SELECT ends.host, ends.root, ends.place, starts.recorded_at AS since, ends.recorded_at AS until,
  later.files - sooner.files AS files, later.bytes - sooner.bytes AS bytes
FROM ends JOIN counted later ON ends.manifest = later.manifest
LEFT JOIN starts ON ends.tree = starts.tree AND starts.nth = 1
LEFT JOIN counted sooner ON starts.manifest = sooner.manifest
WHERE ends.nth = 1
ORDER BY bytes DESC NULLS LAST, ends.host, ends.root{{limit}};
