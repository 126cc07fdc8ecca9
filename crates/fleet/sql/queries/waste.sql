-- Bytes that further copies within one place take, by directory: of files that are alike all but
-- the first by path count. Names of one file are one file.
WITH inodes AS (
  SELECT place, digest, size, ino, min(path) AS path FROM entries
  WHERE age = 1 AND kind = 'file' AND digest IS NOT NULL AND size >= {{min_size}}
  GROUP BY place, digest, size, ino
), copies AS (
  SELECT *, row_number() OVER (PARTITION BY place, digest, size ORDER BY path, ino) AS nth FROM inodes
)
SELECT place, regexp_replace(path, '/?[^/]*$', '') AS directory, count(*) AS files,
  CAST(sum(size) AS DECIMAL(38, 0)) AS bytes
FROM copies WHERE nth > 1
GROUP BY place, regexp_replace(path, '/?[^/]*$', '')
ORDER BY bytes DESC, place, directory{{limit}};
