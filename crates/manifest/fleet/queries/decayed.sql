-- Files whose content is another while place, path, size and time are what they were.
WITH seen AS (
  SELECT place, root, path_key, path, host, created_at, size, mtime_ns, digest, age,
    lag(digest) OVER earlier AS was, lag(size) OVER earlier AS size_was,
    lag(mtime_ns) OVER earlier AS mtime_was, lag(created_at) OVER earlier AS recorded_at
  FROM entries WHERE kind = 'file' AND digest IS NOT NULL
  WINDOW earlier AS (PARTITION BY place, root, path_key ORDER BY created_at, manifest)
)
SELECT place, host, root, path, path_key, size, was, digest, recorded_at, created_at FROM seen
WHERE digest <> was AND size = size_was AND mtime_ns = mtime_was
ORDER BY place, root, path_key, created_at{{limit}};
