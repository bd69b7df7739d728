// Package cursortest makes stores of the editor for tests, as another program would
// make them, opens the stet stores that they are copied into, and reads what the recorded
// fixture must contain.
//
//	path := cursortest.Copy(t, "testdata/state.vscdb", "state.vscdb")
//	db := cursortest.Create(t, path, "")
//	cursortest.Insert(t, db, "composerData:c", `{"composerId": "c"}`)
//	db.Close()
//	store := cursortest.Open(t, path, nil)
package cursortest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	"github.com/stet-dev/stet/internal/keyspace"
)

// EditorSchema makes the tables of a state.vscdb.
const EditorSchema = `CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
	CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);`

// Conversations of the fixture.
const (
	Current = "11111111-1111-4111-8111-111111111111"
	Legacy  = "00000000-0000-4000-8000-000000000000"
	Deleted = "33333333-3333-4333-8333-333333333333"
)

// SDKAgent is the agent of the SDK fixtures.
const SDKAgent = "agent-11111111-2222-3333-4444-555555555555"

// Create opens or makes a database as another program would, and runs some SQL.
func Create(t testing.TB, path, sql string) *sqlite3.Conn {
	t.Helper()
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.BusyTimeout(10e9); err != nil {
		t.Fatal(err)
	}
	Run(t, c, "PRAGMA synchronous=OFF;"+sql) // tests lose no power
	return c
}

// Run runs SQL.
func Run(t testing.TB, c *sqlite3.Conn, sql string) {
	t.Helper()
	if err := c.Exec(sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Insert adds a row to the editor's table; a string becomes TEXT, bytes BLOB.
func Insert(t testing.TB, c *sqlite3.Conn, key string, value any) {
	t.Helper()
	s, _, err := c.Prepare("INSERT INTO cursorDiskKV VALUES (?, ?)")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.BindText(1, key)
	switch v := value.(type) {
	case string:
		err = errors.Join(err, s.BindText(2, v))
	case []byte:
		err = errors.Join(err, s.BindBlob(2, v))
	case nil:
		err = errors.Join(err, s.BindNull(2))
	}
	if err := errors.Join(err, s.Exec()); err != nil {
		t.Fatal(err)
	}
}

// Copy copies a file into a new directory of the test and returns its path.
func Copy(t testing.TB, from, to string) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), to)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Open opens a store until the end of the test.
func Open(t testing.TB, path string, opts *cursor.Options) *cursor.Store {
	t.Helper()
	s, err := cursor.Open(t.Context(), path, opts)
	if err != nil {
		t.Fatalf("Open(%s): %v", path, err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// OwnRow reports whether each store makes a row for itself: the lists of
// conversations by workspace and agent, with a random salt; the changes for indexes;
// and the progress of compaction, which depends on timing.
func OwnRow(key string) bool {
	return keyspace.AllConversationsOf().Contains(key) || keyspace.AllChanged().Contains(key) ||
		key == keyspace.Setting("filters") || key == keyspace.Setting("settled")
}

// OpenDB returns a new stet store, and the same store as the target of imports and
// the source of exports.
func OpenDB(t testing.TB) (*stet.DB, cursorimport.Target) {
	t.Helper()
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, cursorimport.Target{Blobs: db.Blobs(), Rows: db.Rows()}
}

// Collect returns the items of a sequence.
func Collect[T any](t testing.TB, seq func(func(T, error) bool)) []T {
	t.Helper()
	var out []T
	for item, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, item)
	}
	return out
}

// Expectation is what the fixture must contain.
type Expectation struct {
	Blobs map[string]struct {
		Kind   string
		Len    int
		Stored string
	}
	State   string   `json:"conversation_state_hex"`
	Applied []string `json:"-"` // a checkpoint applied to the first content of its file
	Cloud   string   `json:"cloud_metadata_b64"`
	Live    []string `json:"live_blobs_reachable_from_c1_and_bc"`
	Orphans []string
}

// ReadExpectation reads the expectation beside the fixture.
func ReadExpectation(t testing.TB, path string) Expectation {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var e Expectation
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(data, &byName); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(byName[`cp-2 applied to V0 ["one","two"]`], &e.Applied); err != nil {
		t.Fatal(err)
	}
	return e
}

// Heap returns the size of the live heap.
func Heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
