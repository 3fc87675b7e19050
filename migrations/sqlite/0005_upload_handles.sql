-- What a store that has more than a disk must be told to abort an upload, as long as the upload goes on. A table of its own: a new
-- column would make SQLite check all rows, and one damaged row would stop the start.
CREATE TABLE upload_handles (
    resource TEXT NOT NULL PRIMARY KEY,
    handle   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- When a resource goes follows from its times and its owner, and is asked of the cleaner: nothing reads this.
ALTER TABLE resources DROP COLUMN expires_at;
