-- What a store that has more than a disk must be told to abort an upload; only while the row is pending.
ALTER TABLE resources ADD COLUMN upload_handle TEXT;

-- When a resource goes follows from its times and its owner, and is asked of the cleaner: nothing reads this.
ALTER TABLE resources DROP COLUMN expires_at;
