-- Manifests of bc integrity, for DuckDB 1.3 or later.
-- The columns are given: inferred ones take ten times as long, and may be wrong.
CREATE OR REPLACE TEMP VIEW manifest_lines AS
{{sources}};
