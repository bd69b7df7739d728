package postgres

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/kv"
)

// TestConditionsThatFailAreNotLogged makes commits fail in every ordinary way. The server
// takes none of them for an error.
func TestConditionsThatFailAreNotLogged(t *testing.T) {
	server := realservers.Postgres(t, realservers.PostgresOptions{Own: true})
	dsn := server.NewDatabase(t)
	db, other := openNode(t, dsn, nil), openNode(t, dsn, nil)
	rows := newTenant(t, db).Rows()
	mustCommit(t, rows, &kv.Batch{Set: []kv.Set{{Key: "a", Value: []byte("1")}, {Key: "b/1"}}})
	row := wantRow(t, rows, "a", "1")
	absent := blob.Sum([]byte("never stored"))
	for name, b := range map[string]*kv.Batch{
		"another version":   {Expect: []kv.Expect{{Key: "a", Version: row.Version + 1}}, Set: []kv.Set{{Key: "a"}}},
		"a missing row":     {Expect: []kv.Expect{{Key: "z", Version: 7}}, Set: []kv.Set{{Key: "a"}}},
		"an existing row":   {Expect: []kv.Expect{{Key: "a"}}, Set: []kv.Set{{Key: "a"}}},
		"to stay absent":    {Expect: []kv.Expect{{Key: "a"}}, Set: []kv.Set{{Key: "c"}}},
		"contradictory":     {Expect: []kv.Expect{{Key: "a"}, {Key: "a", Version: row.Version}}, Set: []kv.Set{{Key: "a"}}},
		"a missing blob":    {Set: []kv.Set{{Key: "a"}}, Refs: []blob.ID{absent}},
		"with a range":      {Expect: []kv.Expect{{Key: "z", Version: 7}}, DeleteRange: []kv.Range{{Start: "b/", End: "b0"}}},
		"with an open end":  {Expect: []kv.Expect{{Key: "a"}}, DeleteRange: []kv.Range{{Start: "b"}}},
		"with a deletion":   {Expect: []kv.Expect{{Key: "a", Version: 7}}, Delete: []string{"b/1"}},
		"with several rows": {Expect: []kv.Expect{{Key: "z", Version: 7}}, Set: []kv.Set{{Key: "a"}, {Key: "b/1"}, {Key: "d"}}},
	} {
		err := rows.Commit(t.Context(), b)
		var missing *kv.MissingBlobsError
		if !errors.Is(err, kv.ErrConflict) && !errors.As(err, &missing) {
			t.Errorf("%s: %v", name, err)
		}
		wantRow(t, rows, "a", "1")
		wantRow(t, rows, "b/1", "")
	}
	// Two nodes that count in one row are in each other's way all the time.
	var wg sync.WaitGroup
	for _, node := range []*DB{db, other} {
		counter := tenantOf(t, node, "counting").Rows()
		wg.Go(func() { count(t, counter, 50) })
	}
	wg.Wait()
	wantRow(t, tenantOf(t, db, "counting").Rows(), "n", "100")
	for line := range strings.Lines(server.Log(t)) {
		if strings.Contains(line, "ERROR:") && !strings.Contains(line, "duplicate key") && !strings.Contains(line, "null value") {
			t.Errorf("the server has logged %s", line)
		}
	}
	if n := strings.Count(server.Log(t), "ERROR:"); n > 10 { // a race for the first row
		t.Errorf("the server has logged %d errors", n)
	}
}

// count adds n to a row, one by one.
func count(t *testing.T, rows kv.Store, n int) {
	for done := 0; done < n; {
		at, version := 0, uint64(0)
		row, err := rows.Get(t.Context(), "n")
		if err == nil {
			version = row.Version
			_, err = fmt.Sscan(string(row.Value), &at)
		} else if errors.Is(err, kv.ErrNotFound) {
			err = nil
		}
		if err == nil {
			err = rows.Commit(t.Context(), &kv.Batch{
				Expect: []kv.Expect{{Key: "n", Version: version}}, Set: []kv.Set{{Key: "n", Value: fmt.Append(nil, at+1)}},
			})
		}
		switch {
		case err == nil:
			done++
		case !errors.Is(err, kv.ErrConflict):
			t.Error(err)
			return
		}
	}
}
