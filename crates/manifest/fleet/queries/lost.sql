-- Content that an older manifest has and no newest one: nowhere, as far as these manifests know.
WITH kept AS (
  SELECT DISTINCT digest FROM entries
  WHERE age = 1 AND kind = 'file' AND digest IS NOT NULL
)
SELECT old.digest, max(old.size) AS size, count(*) AS names, max(old.created_at) AS last_seen,
  min(concat(coalesce(old.host, '?'), ':', coalesce(old.root, '?'), '/', old.path)) AS example
FROM entries old LEFT JOIN kept ON old.digest = kept.digest
WHERE old.age > 1 AND old.kind = 'file' AND old.size >= {{min_size}}
  AND old.digest IS NOT NULL AND kept.digest IS NULL
GROUP BY old.digest ORDER BY size DESC, old.digest{{limit}};
