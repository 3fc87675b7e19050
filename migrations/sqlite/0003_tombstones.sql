-- A tombstone keeps its ticket, kind and namespace of its owner, size, reason and times: what clients may make long goes.
UPDATE resources SET sha256 = NULL, owner_labels = NULL, owner_name = NULL, file_name = NULL, uploaded_by = NULL
WHERE state = 'deleted';

-- Each sweep asks for tombstones that have served their time, and how many each namespace has. With the state in it an index
-- answers alone; without it SQLite looks at every row all the same.
DROP INDEX resources_tombstones;
CREATE INDEX resources_tombstones ON resources (state, deleted_at) WHERE state = 'deleted';
CREATE INDEX resources_tombstones_by_namespace ON resources (state, owner_namespace, deleted_at) WHERE state = 'deleted';
