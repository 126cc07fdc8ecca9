-- Manifests of bc integrity, for Spark SQL 3.5 or later.
-- The columns are given: inferred ones take ten times as long, and may be wrong.
{{views}}CREATE OR REPLACE TEMP VIEW manifest_lines AS
{{lines}};

-- The files by their names: of one that holds no whole line there is no other trace.
CREATE OR REPLACE TEMP VIEW manifest_files AS
SELECT file AS manifest, is_backup, count(*) AS named FROM (
{{files}}
) AS named GROUP BY file, is_backup;
