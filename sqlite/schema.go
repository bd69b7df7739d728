package sqlite

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
)

// FormatVersion is the format that this release writes. Older ones are migrated
// at open, newer ones are refused.
const FormatVersion = 2

// applicationID marks the database file as ours, at offset 68: "stet".
const applicationID = 0x73746574

// The blob table is a rowid table with a unique index on purpose: WITHOUT ROWID halves
// the write speed of larger contents. Rows are small, and one B-tree keeps neighbours
// together, so they are WITHOUT ROWID.
const schema = `
CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value ANY NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE blobs (
	n     INTEGER PRIMARY KEY,
	id    BLOB NOT NULL UNIQUE CHECK (length(id) = 32),
	gen   INTEGER NOT NULL,
	born  INTEGER NOT NULL,
	size  INTEGER NOT NULL,
	base  BLOB,
	file  TEXT,
	data  BLOB
) STRICT;
CREATE INDEX blobs_by_base ON blobs (base) WHERE base IS NOT NULL;
CREATE TABLE rows (
	key     TEXT PRIMARY KEY,
	version INTEGER NOT NULL,
	value   BLOB NOT NULL
) STRICT, WITHOUT ROWID;
`

// newStoreID returns a fresh random name for a store.
func newStoreID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// createSchema fills an empty database in one transaction.
func createSchema(c *conn, storeID string) error {
	return c.Exec(fmt.Sprintf(`
PRAGMA page_size = 4096;
PRAGMA application_id = %d;
BEGIN IMMEDIATE;
%s
INSERT INTO meta VALUES ('store', '%s'), ('generation', 1);
PRAGMA user_version = %d;
COMMIT;`, applicationID, schema, storeID, FormatVersion))
}
