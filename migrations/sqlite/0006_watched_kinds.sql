-- The kinds that a server on this ledger could read completely, each with the namespace that it watched; empty is all of them.
-- While the owner of an unused resource is unknown, its time counts anew from the start of a server only for these: a kind that
-- was never readable would otherwise stay for ever if the server is replaced often enough.
CREATE TABLE watched_kinds (
    kind      TEXT NOT NULL,
    namespace TEXT NOT NULL,
    PRIMARY KEY (kind, namespace)
) STRICT, WITHOUT ROWID;

-- Nothing says which kinds could be read so far. A damaged row has no text here, and must not stop the start.
INSERT OR IGNORE INTO watched_kinds (kind, namespace)
SELECT DISTINCT owner_kind, '' FROM resources WHERE typeof(owner_kind) = 'text';
