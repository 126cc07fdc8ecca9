-- Where a digest is, or a path, in all manifests that can be compared, old ones too. 'found' says
-- what has become of content whose digest is only known from before.
SELECT host, root, path, path_key, size, known_digest AS digest,
  coalesce(found, CASE WHEN unseen_at IS NOT NULL THEN 'unseen' END) AS found,
  recorded_at, age = 1 AS newest, manifest
FROM entries
WHERE ({{digest}} IS NULL OR known_digest = {{digest}})
  AND ({{path_key}} IS NULL OR path_key = {{path_key}})
ORDER BY host, root, path_key, recorded_at{{limit}};
