-- Files whose content is another while place, path, size and time are what they were, and those
-- that an update has found like that: their digest is not known. Each decay is told once.
WITH seen AS (
  SELECT place, root, path_key, path, host, recorded_at, moment, size, mtime_ns,
    digest, known_digest, found,
    lag(known_digest) OVER earlier AS was, lag(size) OVER earlier AS size_was,
    lag(mtime_ns) OVER earlier AS mtime_was, lag(found) OVER earlier AS found_before,
    lag(recorded_at) OVER earlier AS recorded_before
  FROM entries
  WHERE kind = 'file' AND known_digest IS NOT NULL AND (digest IS NOT NULL OR found = 'damaged')
  WINDOW earlier AS (PARTITION BY place, root, path_key ORDER BY moment NULLS FIRST, manifest)
)
SELECT place, host, root, path, path_key, size,
  CASE WHEN found = 'damaged' THEN known_digest ELSE was END AS was, digest,
  recorded_before AS since, recorded_at AS until FROM seen
WHERE CASE WHEN found = 'damaged'
  THEN coalesce(found_before, '') <> 'damaged' OR was <> known_digest
  ELSE found_before IS NULL AND known_digest <> was AND size = size_was AND mtime_ns = mtime_was END
ORDER BY place, root, path_key, moment{{limit}};
