package search

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// The file is marked with "stSe" and the version of its tables.
const (
	applicationID = 0x73745365
	schemaVersion = 4
)

const schemaSQL = `
DROP TABLE IF EXISTS conv;
DROP TABLE IF EXISTS section;
DROP TABLE IF EXISTS doc;
DROP TABLE IF EXISTS words;
DROP TABLE IF EXISTS state;
DROP TABLE IF EXISTS seen;
DROP TABLE IF EXISTS again;
CREATE TABLE conv(
	num     INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,
	title   TEXT NOT NULL,
	save    INTEGER NOT NULL,
	root    BLOB NOT NULL,
	updated INTEGER NOT NULL,
	tips    TEXT NOT NULL,
	listed  TEXT NOT NULL,
	listed_version INTEGER NOT NULL,
	record_version INTEGER NOT NULL);
CREATE TABLE section(
	num    INTEGER PRIMARY KEY,
	conv   INTEGER NOT NULL,
	name   TEXT NOT NULL,
	digest BLOB NOT NULL,
	UNIQUE(conv, name));
CREATE TABLE doc(
	num      INTEGER PRIMARY KEY,
	conv     INTEGER NOT NULL,
	section  INTEGER NOT NULL,
	place    INTEGER NOT NULL,
	digest   BLOB NOT NULL,
	turn     INTEGER NOT NULL,
	message  TEXT NOT NULL,
	role     TEXT NOT NULL,
	kind     TEXT NOT NULL,
	tool     TEXT NOT NULL,
	time     INTEGER NOT NULL,
	subagent TEXT NOT NULL,
	save     INTEGER NOT NULL,
	weight   REAL NOT NULL,
	UNIQUE(section, place));
CREATE VIRTUAL TABLE words USING fts5(body, path, tokenize = "unicode61 remove_diacritics 2");
INSERT INTO words(words, rank) VALUES('secure-delete', 1);
` + changesSQL

// changesSQL creates the tables that say which changes the index has seen.
const changesSQL = `
CREATE TABLE state(trimmed INTEGER NOT NULL);
CREATE TABLE seen(id TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE again(id TEXT PRIMARY KEY) WITHOUT ROWID;
`

// create creates the empty tables.
func create(c *conn) error {
	return c.write(func() error {
		if err := c.Exec(schemaSQL); err != nil {
			return err
		}
		return c.Exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion))
	})
}

// withoutChanges is the version that lacks the tables of changesSQL.
const withoutChanges = 3

// upgrade adds what an index of the previous version lacks. The next update then looks at
// all conversations, and reads those that changed.
func upgrade(c *conn) error {
	return c.write(func() error { // unless another process was faster
		version := 0
		if err := c.query("PRAGMA user_version", func(s *sqlite3.Stmt) { version = s.ColumnInt(0) }); err != nil || version != withoutChanges {
			return err
		}
		return c.Exec(changesSQL + fmt.Sprintf("PRAGMA user_version = %d", schemaVersion))
	})
}

// ensure checks that the tables are those of this release, and creates them in a new
// file.
func ensure(c *conn) error {
	app, version, tables := 0, 0, 0
	read := func(into *int) func(*sqlite3.Stmt) {
		return func(s *sqlite3.Stmt) { *into = s.ColumnInt(0) }
	}
	for sql, into := range map[string]*int{"PRAGMA application_id": &app, "PRAGMA user_version": &version, "SELECT count(*) FROM sqlite_schema": &tables} {
		if err := c.query(sql, read(into)); err != nil {
			return err
		}
	}
	switch {
	case app == 0 && version == 0 && tables == 0:
		return create(c)
	case app == applicationID && version > schemaVersion:
		return errNewer
	case app == applicationID && version == withoutChanges:
		if err := upgrade(c); err != nil {
			return err
		}
	case app != applicationID || version != schemaVersion:
		return errSchema
	}
	for _, sql := range []string{"SELECT num, tips FROM conv LIMIT 1", "SELECT num FROM section LIMIT 1", "SELECT trimmed FROM state LIMIT 1", "SELECT id, version FROM seen LIMIT 1", "SELECT id FROM again LIMIT 1", "SELECT num, save, weight FROM doc LIMIT 1", "SELECT rowid FROM words WHERE words MATCH 'x' LIMIT 1"} {
		if err := c.query(sql, nil); errors.Is(err, sqlite3.ERROR) {
			return fmt.Errorf("%w: %w", errSchema, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}
