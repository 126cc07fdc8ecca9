SELECT filename AS manifest, {{is_backup}} AS is_backup, * EXCLUDE (filename)
FROM read_json([{{files}}], format = 'newline_delimited', ignore_errors = true, hive_partitioning = false,
    maximum_object_size = 67108864, filename = true, columns = {
    type: 'VARCHAR', schema: 'INTEGER', algorithm: 'VARCHAR', created_at: 'VARCHAR',
    updated_at: 'VARCHAR', options: 'VARCHAR',
    host: 'VARCHAR', machine: 'VARCHAR', root: 'VARCHAR', root_b64: 'VARCHAR',
    fs_uuid: 'VARCHAR', mount_source: 'VARCHAR', scope: 'VARCHAR', shard: 'VARCHAR',
    path: 'VARCHAR', path_b64: 'VARCHAR', kind: 'VARCHAR', size: 'UBIGINT', mode: 'UINTEGER',
    uid: 'UINTEGER', gid: 'UINTEGER', mtime_ns: 'BIGINT', ctime_ns: 'BIGINT', ino: 'UBIGINT',
    nlink: 'UBIGINT', dev: 'UINTEGER', mount: 'VARCHAR', digest: 'VARCHAR',
    target: 'VARCHAR', verified_at: 'VARCHAR', tried_at: 'VARCHAR', unseen_at: 'VARCHAR',
    found: 'VARCHAR', error: 'VARCHAR',
    entries: 'UBIGINT', files: 'UBIGINT', dirs: 'UBIGINT', bytes: 'UBIGINT', errors: 'UBIGINT',
    sha256: 'VARCHAR'})
