-- "CLKR": tells a ledger from another program's database.
PRAGMA application_id = 0x434c4b52;

-- One row for each staged resource. Times are milliseconds since the Unix epoch, durations milliseconds. A tombstone keeps its
-- ticket, kind and namespace of its owner, size, reason and times: what clients may make long goes.
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
    owner_seen_at         INTEGER,
    owner_absent_since    INTEGER,
    -- When a sweep first saw that all pods that own the resource had finished.
    owner_finished_since  INTEGER,
    deleted_at            INTEGER,
    deletion_reason       TEXT,
    uploaded_by           TEXT,
    -- For each read key the hash, and when it ends: 32 bytes, and 8 bytes of a big-endian time.
    read_keys             BLOB,
    -- What was acknowledged has an owner and bytes.
    CHECK (state IN ('pending', 'deleted')
           OR (size_bytes IS NOT NULL AND sha256 IS NOT NULL AND owner_kind IS NOT NULL
               AND owner_namespace IS NOT NULL AND owner_labels IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- The start and each sweep ask for what an interruption left behind.
CREATE INDEX resources_age ON resources (state, created_at);
-- Each sweep asks for tombstones that have served their time, and how many each namespace has. With the state in it an index
-- answers alone; without it SQLite looks at every row all the same.
CREATE INDEX resources_tombstones ON resources (state, deleted_at) WHERE state = 'deleted';
CREATE INDEX resources_tombstones_by_namespace ON resources (state, owner_namespace, deleted_at) WHERE state = 'deleted';

-- A client that chooses its secret has no id.
CREATE INDEX resources_secrets ON resources (secret_hash);

-- Hashes, in hexadecimal digits, of secrets that clients have chosen, whose rows are gone without a tombstone. They stay as long as
-- tombstones, and no row may have them meanwhile: where a late driver looks for its file, nobody else can put one.
CREATE TABLE spent_secrets (
    secret_hash TEXT    NOT NULL PRIMARY KEY,
    spent_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX spent_secrets_age ON spent_secrets (spent_at);

-- What a store that has more than a disk must be told to abort an upload, as long as the upload goes on.
CREATE TABLE upload_handles (
    resource TEXT NOT NULL PRIMARY KEY,
    handle   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Keys of uploads that were given up while their commit may have been on its way: their bytes may still appear in the store, and
-- then go. They stay as long as tombstones.
CREATE TABLE abandoned_uploads (
    key          TEXT    NOT NULL PRIMARY KEY,
    abandoned_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Bytes in the store that belong to no row, and when a listing first found them so. They may belong to a ledger that was lost, and
-- wait for it. The listing was made with this ledger: one that takes its place begins anew.
CREATE TABLE strays (
    key        TEXT    NOT NULL PRIMARY KEY,
    seen_at    INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The kinds that a server on this ledger could read completely, each with the namespace that it watched; empty is all of them.
-- While the owner of an unused resource is unknown, its time counts anew from the start of a server only for these: a kind that
-- was never readable would otherwise stay for ever if the server is replaced often enough.
CREATE TABLE watched_kinds (
    kind      TEXT NOT NULL,
    namespace TEXT NOT NULL,
    PRIMARY KEY (kind, namespace)
) STRICT, WITHOUT ROWID;

-- What the server remembers of its surroundings: `cluster` is the uid of the namespace kube-system.
CREATE TABLE facts (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
