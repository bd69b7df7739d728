package search

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// Dump returns everything that the index holds, sorted.
func (ix *Index) Dump(t testing.TB) []string {
	t.Helper()
	var all []string
	err := ix.find(t.Context(), func(c *conn) error {
		return c.query(`SELECT c.id, s.name, hex(s.digest), d.place, hex(d.digest), d.turn, d.message, d.role, d.kind, d.tool, d.time, d.subagent, d.save, w.body, w.path
			FROM words w JOIN doc d ON d.num = w.rowid JOIN section s ON s.num = d.section JOIN conv c ON c.num = s.conv AND c.num = d.conv`,
			func(s *sqlite3.Stmt) {
				row := ""
				for i := range s.ColumnCount() {
					row += fmt.Sprintf("%q ", s.ColumnText(i))
				}
				all = append(all, row)
			})
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// SetTrimAt sets how many changes are kept.
func SetTrimAt(n int) (restore func()) {
	before := trimAt
	trimAt = n
	return func() { trimAt = before }
}

// WithoutChanges makes the index one of the version before changes were kept.
func (ix *Index) WithoutChanges(t testing.TB) {
	t.Helper()
	err := ix.update(t.Context(), func(c *conn) error {
		return c.Exec(fmt.Sprintf("DROP TABLE state; DROP TABLE seen; DROP TABLE again; PRAGMA user_version = %d", withoutChanges))
	})
	if err != nil {
		t.Fatal(err)
	}
}
