-- Manifests of bc integrity, for Spark SQL 3.5 or later.
-- The columns are given: inferred ones take ten times as long, and may be wrong.
{{sources}}CREATE OR REPLACE TEMP VIEW manifest_lines AS
{{union}};
