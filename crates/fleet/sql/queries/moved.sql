-- Content that is under another path, or in another tree, than in the manifest before the newest.
-- Where several are alike, they are paired in the order of their paths.
WITH files AS (
  SELECT tree, root, path_key, digest, size, max(host) AS host, max(path) AS path,
    bool_or(age = 1) AS is_here, bool_or(age = 2) AS was_here
  FROM entries
  WHERE age <= 2 AND kind = 'file' AND digest IS NOT NULL AND size > 0
  GROUP BY tree, root, path_key, digest, size
), compared AS (
  SELECT *, bool_or(was_here) OVER (PARTITION BY tree) AS was_recorded FROM files
), changed AS (
  SELECT *, row_number() OVER (PARTITION BY digest, size, is_here
    ORDER BY tree, path_key) AS nth
  FROM compared WHERE is_here <> was_here AND was_recorded
)
SELECT max(CASE WHEN was_here THEN host END) AS host, max(CASE WHEN was_here THEN root END) AS root,
  max(CASE WHEN was_here THEN path END) AS path,
  max(CASE WHEN was_here THEN path_key END) AS path_key,
  max(CASE WHEN is_here THEN host END) AS new_host, max(CASE WHEN is_here THEN root END) AS new_root,
  max(CASE WHEN is_here THEN path END) AS new_path,
  max(CASE WHEN is_here THEN path_key END) AS new_path_key, size, digest
FROM changed GROUP BY digest, size, nth HAVING count(*) = 2
ORDER BY host, root, path_key{{limit}};
