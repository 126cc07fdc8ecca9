-- Content that lies in more than one place: what one copy of it would save.
-- The size of a content is that of any list that has sizes.
WITH sizes AS (
  SELECT digest, max(size) AS size FROM entries WHERE kind = 'file' AND digest IS NOT NULL GROUP BY digest
), files AS (
  SELECT e.digest, coalesce(e.size, s.size) AS size, e.place, e.host, e.root, e.path
  FROM entries e JOIN sizes s ON e.digest = s.digest
  WHERE e.age = 1 AND e.kind = 'file'
)
SELECT digest, size, count(DISTINCT place) AS places, count(*) AS names,
  (count(DISTINCT place) - 1) * size AS bytes,
  min(concat(coalesce(host, '?'), ':', coalesce(root, '?'), '/', path)) AS example
FROM files WHERE coalesce(size >= {{min_size}}, true)
GROUP BY digest, size HAVING count(DISTINCT place) > 1
ORDER BY bytes DESC NULLS LAST, digest{{limit}};
