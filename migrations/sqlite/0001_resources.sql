-- One row for each staged resource. Times are milliseconds since the Unix epoch, durations milliseconds.
CREATE TABLE resources (
    id                    TEXT    NOT NULL PRIMARY KEY,
    secret_hash           BLOB    NOT NULL CHECK (length(secret_hash) = 32),
    state                 TEXT    NOT NULL CHECK (state IN ('pending', 'ready', 'deleting', 'deleted')),
    size_bytes            INTEGER CHECK (size_bytes >= 0),
    sha256                BLOB    CHECK (length(sha256) = 32),
    owner_kind            TEXT,
    owner_namespace       TEXT,
    owner_labels          TEXT,
    owner_name            TEXT,
    file_name             TEXT,
    created_at            INTEGER NOT NULL,
    unused_timeout_millis INTEGER NOT NULL,
    ttl_millis            INTEGER,
    first_used_at         INTEGER,
    last_used_at          INTEGER,
    expires_at            INTEGER,
    owner_seen_at         INTEGER,
    owner_absent_since    INTEGER,
    deleted_at            INTEGER,
    deletion_reason       TEXT,
    uploaded_by           TEXT,
    -- What was acknowledged has an owner and bytes.
    CHECK (state IN ('pending', 'deleted')
           OR (size_bytes IS NOT NULL AND sha256 IS NOT NULL AND owner_kind IS NOT NULL
               AND owner_namespace IS NOT NULL AND owner_labels IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- The sweep asks for what is due, and for what an interruption left behind.
CREATE INDEX resources_due ON resources (state, expires_at);
CREATE INDEX resources_age ON resources (state, created_at);
