-- When a sweep first saw that all pods that own the resource had finished. Milliseconds since the Unix epoch.
ALTER TABLE resources ADD COLUMN owner_finished_since INTEGER;

-- Each sweep asks for tombstones that have served their time.
CREATE INDEX resources_tombstones ON resources (deleted_at) WHERE state = 'deleted';

-- What is due is no longer asked of the database: the sweep keeps what it needs of each ready resource in memory.
DROP INDEX resources_due;
