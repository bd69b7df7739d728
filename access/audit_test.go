package access

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func records(t *testing.T, a *Audit) []Record {
	t.Helper()
	var all []Record
	if err := a.Records(func(r Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestACallHasTwoLines(t *testing.T) {
	a := OpenAudit(filepath.Join(t.TempDir(), AuditName))
	if got := records(t, a); len(got) != 0 {
		t.Errorf("an empty log has %v", got)
	}
	begun, err := a.Begin(Principal{Token: "id1", Tenant: "shop", Scope: Write}, "r1", "Delete", "conversation c1")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.End(begun, "ok"); err != nil {
		t.Fatal(err)
	}
	got := records(t, a)
	if len(got) != 2 || got[0].Phase != PhaseBegin || got[1].Phase != PhaseEnd || got[0].ID != got[1].ID || got[0].Result != "" || got[1].Result != "ok" {
		t.Fatalf("the log has %+v", got)
	}
	for _, r := range got {
		if r.Schema != "stet.audit.v1" || r.Token != "id1" || r.Tenant != "shop" || r.Request != "r1" || r.Action != "Delete" || r.Target != "conversation c1" || r.Time.IsZero() {
			t.Errorf("a line has %+v", r)
		}
	}
	info, err := os.Stat(a.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// What a crash cut off neither hides the next line nor is changed by it.
func TestATornLineStaysOneLine(t *testing.T) {
	a := OpenAudit(filepath.Join(t.TempDir(), AuditName))
	if _, err := a.Begin(Principal{}, "", "one", ""); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(a.Path())
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(whole); cut += 7 {
		if err := os.WriteFile(a.Path(), append(whole[:len(whole):len(whole)], whole[:cut]...), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := records(t, a); len(got) != 1 {
			t.Errorf("cut at %d: read %d lines, want 1", cut, len(got))
		}
		if _, err := a.Begin(Principal{}, "", "two", ""); err != nil {
			t.Fatal(err)
		}
		if got := records(t, a); len(got) != 2 || got[1].Action != "two" {
			t.Errorf("cut at %d: %+v", cut, got)
		}
	}
}

func TestManyWriteOneLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), AuditName)
	var wg sync.WaitGroup
	for range 4 {
		a := OpenAudit(path) // each as a process of its own
		for range 5 {
			wg.Go(func() {
				r, err := a.Begin(Principal{}, "", "call", strings.Repeat("x", 5000))
				if err == nil {
					err = a.End(r, "ok")
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	ends := make(map[string]int)
	for i, line := range lines {
		var r Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		ends[r.ID]++
	}
	if len(lines) != 40 || len(ends) != 20 {
		t.Errorf("%d lines of %d calls", len(lines), len(ends))
	}
}

func TestALogThatCannotBeWritten(t *testing.T) {
	a := OpenAudit(filepath.Join(t.TempDir(), "missing", AuditName))
	if _, err := a.Begin(Principal{}, "", "call", ""); err == nil {
		t.Error("no error")
	}
}
