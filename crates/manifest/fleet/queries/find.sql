-- Where a digest is, or a path, in all manifests that can be compared, old ones too.
SELECT host, root, path, path_key, size, digest, created_at, age = 1 AS newest, manifest
FROM entries
WHERE ({{digest}} IS NULL OR digest = {{digest}}) AND ({{path_key}} IS NULL OR path_key = {{path_key}})
ORDER BY host, root, path_key, created_at{{limit}};
