-- How much more each tree holds than at an earlier time: the last manifests up to both times.
WITH dated AS (
  SELECT *, substr(created_at, 1, 19) AS moment FROM ranked_manifests
), starts AS (
  SELECT *, row_number() OVER (PARTITION BY machine_key, root ORDER BY moment DESC, age) AS nth
  FROM dated WHERE moment <= {{from}}
), ends AS (
  SELECT *, row_number() OVER (PARTITION BY machine_key, root ORDER BY moment DESC, age) AS nth
  FROM dated WHERE moment <= {{to}}
)
SELECT ends.host, ends.root, ends.place, starts.created_at AS since, ends.created_at AS until,
  CAST(ends.files AS DECIMAL(38, 0)) - CAST(starts.files AS DECIMAL(38, 0)) AS files,
  CAST(ends.bytes AS DECIMAL(38, 0)) - CAST(starts.bytes AS DECIMAL(38, 0)) AS bytes
FROM ends JOIN starts ON ends.machine_key = starts.machine_key AND ends.root = starts.root
WHERE ends.nth = 1 AND starts.nth = 1
ORDER BY bytes DESC, ends.host, ends.root{{limit}};
