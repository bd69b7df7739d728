package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A call that is interrupted loses at most the run whose line was being written.
func TestLedgerResumes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	add := func(e entry) {
		t.Helper()
		l, err := openLedger(path)
		if err == nil {
			err = l.add(e)
		}
		if err == nil {
			err = l.close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add(entry{path: "example.org/a", sum: "1", threads: 8, took: 3 * time.Second, ok: true})
	add(entry{path: "example.org/a", sum: "1", threads: 2, took: 4 * time.Second})
	add(entry{path: "example.org/b", sum: "2", threads: 1, took: time.Second, ok: true})
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-2); err != nil { // in the middle of the last run
		t.Fatal(err)
	}
	add(entry{path: "example.org/a", sum: "3", threads: 1, took: 5 * time.Second, ok: true})

	l, err := openLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if got := l.of("example.org/a", "1"); len(got) != 2 || !got[0].ok || got[0].threads != 8 || got[1].ok || got[1].took != 4*time.Second {
		t.Errorf("runs of the first tests of a: %v", got)
	}
	if got := l.runs("example.org/a", "3"); got != 1 {
		t.Errorf("%d runs of the second tests of a, want 1", got)
	}
	if got := l.runs("example.org/b", "2"); got != 0 {
		t.Errorf("%d runs of b, want none: its line was cut", got)
	}
	if got := l.took("example.org/a"); got != 5*time.Second {
		t.Errorf("the last run of a took %s, want 5s", got)
	}
}
