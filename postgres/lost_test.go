package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/kv"
)

// behindProxy opens a node whose connection can be cut at a chosen transaction.
func behindProxy(t *testing.T) (*Tenant, *proxy) {
	server := realservers.Postgres(t, realservers.PostgresOptions{})
	p := newProxy(t, server.Addr())
	return newTenant(t, openNode(t, p.dsn(server.NewDatabase(t)), nil)), p
}

func mustCommit(t testing.TB, rows kv.Store, b *kv.Batch) {
	t.Helper()
	if err := rows.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func set(key, value string) *kv.Batch {
	return &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte(value)}}}
}

func wantRow(t testing.TB, rows kv.Store, key, value string) kv.Row {
	t.Helper()
	row, err := rows.Get(t.Context(), key)
	if err != nil || string(row.Value) != value {
		t.Fatalf("row %s holds %q, %v, want %q", key, row.Value, err, value)
	}
	return row
}

// TestLostAnswers cuts the connection before and after a commit was done. Its
// expectation would fail if it were done twice, and its row be missing if it
// were not done at all.
func TestLostAnswers(t *testing.T) {
	for name, f := range map[string]mishap{"the request is lost": loseRequest, "the answer is lost": loseAnswer} {
		t.Run(name, func(t *testing.T) {
			tenant, p := behindProxy(t)
			mustCommit(t, tenant.Rows(), set("r", "first"))
			for round := range 3 {
				value := "marker " + string(rune('a'+round))
				row, err := tenant.Rows().Get(t.Context(), "r")
				if err != nil {
					t.Fatal(err)
				}
				b := blob.New([]byte("blob of " + value))
				if err := tenant.Blobs().Put(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				p.arm(f, value)
				err = tenant.Rows().Commit(t.Context(), &kv.Batch{
					Expect: []kv.Expect{{Key: "r", Version: row.Version}, {Key: "new " + value}},
					Set:    []kv.Set{{Key: "r", Value: []byte(value)}, {Key: "new " + value, Value: []byte("1")}},
					Refs:   []blob.ID{b.ID},
				})
				if err != nil {
					t.Fatalf("commit whose connection was cut: %v", err)
				}
				<-p.hit
				wantRow(t, tenant.Rows(), "r", value)
			}
		})
	}
}

// TestLateRequest lets a commit arrive after its client has done it again and
// another one came after. It must have no effect.
func TestLateRequest(t *testing.T) {
	tenant, p := behindProxy(t)
	mustCommit(t, tenant.Rows(), set("r", "first"))
	p.arm(lateRequest, "marker")
	mustCommit(t, tenant.Rows(), set("r", "marker"))
	<-p.hit
	wantRow(t, tenant.Rows(), "r", "marker")
	mustCommit(t, tenant.Rows(), set("r", "later"))
	p.mu.Lock()
	late := p.late
	p.mu.Unlock()
	if answer := late(); !bytes.Contains(answer, []byte(codeUnique)) {
		t.Errorf("the database answers %q, want a refusal", answer)
	}
	wantRow(t, tenant.Rows(), "r", "later")
}

// TestLateDeletion lets a commit that deletes a row arrive after its client has done it
// again, and after the row came back. Its condition does not hold any more, so nothing may
// be deleted, although its name exists: the look for it has left it.
func TestLateDeletion(t *testing.T) {
	tenant, p := behindProxy(t)
	mustCommit(t, tenant.Rows(), set("r", "first"))
	mustCommit(t, tenant.Rows(), set("d", "first"))
	p.arm(lateRequest, "marker")
	mustCommit(t, tenant.Rows(), &kv.Batch{
		Expect: []kv.Expect{{Key: "r", Version: wantRow(t, tenant.Rows(), "r", "first").Version}},
		Set:    []kv.Set{{Key: "r", Value: []byte("marker")}}, Delete: []string{"d"},
	})
	<-p.hit
	mustCommit(t, tenant.Rows(), set("d", "again"))
	p.mu.Lock()
	late := p.late
	p.mu.Unlock()
	late()
	wantRow(t, tenant.Rows(), "r", "marker")
	wantRow(t, tenant.Rows(), "d", "again")
}

// TestLostLook cuts the connection while a node looks whether a commit happened. The look
// itself writes the name of the commit, and a second look must not take it for the commit's.
func TestLostLook(t *testing.T) {
	for _, done := range []bool{false, true} {
		for name, f := range map[string]mishap{"the request is lost": loseRequest, "the answer is lost": loseAnswer} {
			t.Run(fmt.Sprintf("%s, happened: %v", name, done), func(t *testing.T) {
				tenant, p := behindProxy(t)
				db := tenant.db
				a := db.newAttempt()
				if done {
					if _, err := db.pool.Exec(t.Context(), db.sql(sqlCommit), a.minute, a.id); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 {
					p.arm(f, string(a.id))
					happened, err := db.happened(a, time.Now().Add(time.Minute))
					if err != nil || happened != done {
						t.Fatalf("happened: %v, %v, want %v", happened, err, done)
					}
					<-p.hit
				}
			})
		}
	}
}

// TestLookAfterNamesWereRemoved is of a node that was frozen for long: the name of its commit
// may be gone because it is old, so nobody knows whether it happened, and it must not be
// done again.
func TestLookAfterNamesWereRemoved(t *testing.T) {
	db := openNode(t, newDatabase(t, 15), nil)
	a := db.newAttempt()
	for late, known := range map[time.Duration]bool{0: true, commitsFound - 2*time.Minute: true, commitsFound + 2*time.Minute: false, commitsKept: false} {
		before := attempt{minute: a.minute - int64(late/time.Minute), id: a.id}
		happened, err := db.happened(before, time.Now().Add(time.Minute))
		if happened || known != (err == nil) || !known && !errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("%v later: %v, %v", late, happened, err)
		}
	}
}

// TestForgottenCommits shows that the names of transactions do not pile up.
func TestForgottenCommits(t *testing.T) {
	db := openNode(t, newDatabase(t, 15), nil)
	tenant := newTenant(t, db)
	count := func() (n int) {
		if err := db.pool.QueryRow(t.Context(), db.sql(`SELECT count(*) FROM @commits`)).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	db.skew.Add(int64(24 * time.Hour)) // as if our clock were a day behind
	if err := db.readClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if off := time.Duration(db.skew.Load()).Abs(); off > time.Hour {
		t.Fatalf("the database on this machine seems %v away", off)
	}
	mustCommit(t, tenant.Rows(), set("a", "1"))
	if err := db.dropCommits(time.Now().Add(-commitsKept)); err != nil || count() != 1 {
		t.Fatalf("%d names after dropping old ones, %v, want 1", count(), err)
	}
	if err := db.dropCommits(time.Now().Add(2 * time.Minute)); err != nil || count() != 0 {
		t.Fatalf("%d names after dropping all, %v, want none", count(), err)
	}
}
