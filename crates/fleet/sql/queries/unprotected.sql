-- Content that lies in one place only; with backups named, content that is in none of them.
-- The size of a content is that of any list that has sizes.
WITH sizes AS (
  SELECT digest, max(size) AS size FROM entries WHERE kind = 'file' AND digest IS NOT NULL GROUP BY digest
), files AS (
  SELECT e.digest, coalesce(e.size, s.size) AS size, e.place, e.is_backup, e.host, e.root, e.path
  FROM entries e JOIN sizes s ON e.digest = s.digest
  WHERE e.age = 1 AND e.kind = 'file'
), held AS (
  SELECT digest, size, count(DISTINCT place) AS places, count(*) AS names,
    bool_or(is_backup) AS in_backup, bool_and(is_backup) AS only_backup,
    min(place) AS place, min(concat(coalesce(host, '?'), ':', coalesce(root, '?'), '/', path)) AS example
  FROM files WHERE coalesce(size >= {{min_size}}, true)
  GROUP BY digest, size
)
SELECT digest, size, places, names, place, example FROM held
WHERE CASE WHEN {{has_backups}} THEN NOT in_backup ELSE places = 1 END AND NOT only_backup
ORDER BY size DESC NULLS LAST, digest{{limit}};
