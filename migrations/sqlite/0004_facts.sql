-- What the server remembers of its surroundings: `cluster` is the uid of the namespace kube-system.
CREATE TABLE facts (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
