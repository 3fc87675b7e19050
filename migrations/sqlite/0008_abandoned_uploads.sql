-- Keys of uploads that were given up while their commit may have been on its way: their bytes may still appear in the store, and
-- then go. They stay as long as tombstones. A table of their own: the states of `resources` cannot be changed without a copy of the
-- whole table, which one damaged row would stop.
CREATE TABLE abandoned_uploads (
    key          TEXT    NOT NULL PRIMARY KEY,
    abandoned_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
