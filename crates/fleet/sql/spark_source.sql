CREATE OR REPLACE TEMPORARY VIEW manifest_source_{{nth}} (
    type STRING, schema INT, algorithm STRING, created_at STRING,
    updated_at STRING, options STRING,
    host STRING, machine STRING, root STRING, root_b64 STRING,
    fs_uuid STRING, mount_source STRING, scope STRING, shard STRING,
    path STRING, path_b64 STRING, kind STRING, size BIGINT, mode BIGINT,
    uid BIGINT, gid BIGINT, mtime_ns BIGINT, ctime_ns BIGINT, ino DECIMAL(20,0),
    nlink BIGINT, dev BIGINT, mount STRING, digest STRING,
    target STRING, verified_at STRING, tried_at STRING, unseen_at STRING,
    found STRING, error STRING,
    entries BIGINT, files BIGINT, dirs BIGINT, bytes BIGINT, errors BIGINT,
    sha256 STRING)
USING json OPTIONS (path {{file}});
CREATE OR REPLACE TEMPORARY VIEW manifest_file_{{nth}} USING binaryFile OPTIONS (path {{file}});
