-- Content that lies in one place only; with backups named, content that is in none of them.
WITH held AS (
  SELECT digest, size, count(DISTINCT place) AS places, count(*) AS names,
    bool_or(is_backup) AS in_backup, bool_and(is_backup) AS only_backup,
    min(place) AS place, min(concat(coalesce(host, '?'), ':', coalesce(root, '?'), '/', path)) AS example
  FROM entries
  WHERE age = 1 AND kind = 'file' AND digest IS NOT NULL AND size >= {{min_size}}
  GROUP BY digest, size
)
SELECT digest, size, places, names, place, example FROM held
WHERE CASE WHEN {{has_backups}} THEN NOT in_backup ELSE places = 1 END AND NOT only_backup
ORDER BY size DESC, digest{{limit}};
