
-- For more than one question, write what was read once, and ask that:
--   CREATE TABLE fleet_manifests USING parquet AS SELECT * FROM manifests;
--   CREATE TABLE fleet_entries USING parquet PARTITIONED BY (place) AS SELECT * FROM entries;
-- and in later sessions, before the views ranked_manifests and warnings and the queries:
--   CREATE TEMP VIEW manifests AS SELECT * FROM fleet_manifests;
--   CREATE TEMP VIEW entries AS SELECT * FROM fleet_entries;
