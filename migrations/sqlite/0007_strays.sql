-- Bytes in the store that belong to no row, and when a listing first found them so. They may belong to a ledger that was lost, and
-- wait for it. The listing was made with this ledger: one that takes its place begins anew.
CREATE TABLE strays (
    key        TEXT    NOT NULL PRIMARY KEY,
    seen_at    INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
