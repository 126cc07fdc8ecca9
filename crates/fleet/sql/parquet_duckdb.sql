
-- For more than one question, write what was read once, and ask that:
--   COPY (SELECT * FROM manifests) TO 'manifests.parquet' (FORMAT parquet);
--   COPY (SELECT * FROM entries) TO 'entries' (FORMAT parquet, PARTITION_BY (place));
-- and in later sessions, before the views ranked_manifests and warnings and the queries:
--   CREATE TEMP VIEW manifests AS FROM 'manifests.parquet';
--   CREATE TEMP VIEW entries AS FROM read_parquet('entries/*/*.parquet', hive_partitioning = true);
