-- Content that lies in more than one place: what one copy of it would save.
SELECT digest, size, count(DISTINCT place) AS places, count(*) AS names,
  (count(DISTINCT place) - 1) * size AS bytes,
  min(concat(coalesce(host, '?'), ':', coalesce(root, '?'), '/', path)) AS example
FROM entries
WHERE age = 1 AND kind = 'file' AND digest IS NOT NULL AND size >= {{min_size}}
GROUP BY digest, size HAVING count(DISTINCT place) > 1
ORDER BY bytes DESC, digest{{limit}};
