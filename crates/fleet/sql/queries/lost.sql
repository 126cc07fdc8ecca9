-- Content that an older manifest has, or a newest one knows to be damaged, and no newest one has:
-- nowhere, as far as these manifests know. What could not be read or seen is not lost by that.
WITH kept AS (
  SELECT DISTINCT known_digest AS digest, size FROM entries
  WHERE age = 1 AND kind = 'file' AND known_digest IS NOT NULL AND coalesce(found, '') <> 'damaged'
)
SELECT old.known_digest AS digest, old.size, count(*) AS names, max(old.recorded_at) AS last_seen,
  min(concat(coalesce(old.host, '?'), ':', coalesce(old.root, '?'), '/', old.path)) AS example
FROM entries old LEFT JOIN kept
  ON old.known_digest = kept.digest AND coalesce(old.size = kept.size, true)
WHERE (old.age > 1 OR old.found = 'damaged') AND old.kind = 'file' AND coalesce(old.size >= {{min_size}}, true)
  AND old.known_digest IS NOT NULL AND kept.digest IS NULL
GROUP BY old.known_digest, old.size ORDER BY size DESC NULLS LAST, digest{{limit}};
