package access

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stet-dev/stet/internal/testenv"
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
	a := OpenAudit(filepath.Join(t.TempDir(), AuditName), nil)
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
	if err != nil || !testenv.HasMode(info, 0o600) {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// What a crash cut off neither hides the next line nor is changed by it.
func TestATornLineStaysOneLine(t *testing.T) {
	a := OpenAudit(filepath.Join(t.TempDir(), AuditName), nil)
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
		a := OpenAudit(path, nil) // each as a process of its own
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
	a := OpenAudit(filepath.Join(t.TempDir(), "missing", AuditName), nil)
	if _, err := a.Begin(Principal{}, "", "call", ""); err == nil {
		t.Error("no error")
	}
}

func TestTargetsArePrintableAndShort(t *testing.T) {
	a := OpenAudit(filepath.Join(t.TempDir(), AuditName), nil)
	for _, target := range []string{"a\x1b[2Jb\nc", strings.Repeat("é", 400), strings.Repeat("\x00", 400), `say "yes"`} {
		if _, err := a.Begin(Principal{}, "", "call", target); err != nil {
			t.Fatal(err)
		}
	}
	got := records(t, a)
	if got[0].Target != `a\x1b[2Jb\nc` || got[3].Target != `say "yes"` {
		t.Errorf("targets %q and %q", got[0].Target, got[3].Target)
	}
	for _, r := range got {
		if len(r.Target) > 256 || !utf8.ValidString(r.Target) {
			t.Errorf("%d bytes: %q", len(r.Target), r.Target)
		}
	}
}

// changeLine rewrites line n of a file, or removes it where change returns "".
func changeLine(t *testing.T, path string, n int, change func(string) string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	lines[n] = change(lines[n])
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A line that was changed, removed, or cut off the end shows.
func TestTheChainShowsWhatWasRemoved(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"nothing": func(*testing.T, string) {},
		"changed": func(t *testing.T, path string) {
			changeLine(t, path, 3, func(l string) string { return strings.Replace(l, "call3", "call9", 1) })
		},
		"removed": func(t *testing.T, path string) { changeLine(t, path, 3, func(string) string { return "" }) },
		"garbage": func(t *testing.T, path string) { changeLine(t, path, 3, func(string) string { return "{\n" }) },
		"the end": func(t *testing.T, path string) { changeLine(t, path, 7, func(string) string { return "" }) },
		"the log": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := OpenAudit(filepath.Join(t.TempDir(), AuditName), nil)
			for n := range 8 {
				if err := a.Note(Record{Action: "call" + strconv.Itoa(n)}); err != nil {
					t.Fatal(err)
				}
			}
			change(t, a.Path())
			_, err := a.Verify()
			if name == "nothing" && err != nil || name != "nothing" && !errors.Is(err, ErrAuditChanged) {
				t.Errorf("verify: %v", err)
			}
		})
	}
}

// The log is put aside in time, the oldest files go, and the chain goes on.
func TestTheLogIsBounded(t *testing.T) {
	dir := t.TempDir()
	a := OpenAudit(filepath.Join(dir, AuditName), &AuditOptions{MaxFile: 2000, Files: 3})
	for n := range 100 {
		if err := a.Note(Record{Action: "call" + strconv.Itoa(n)}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Verify(); err != nil {
			t.Fatalf("after %d lines: %v", n+1, err)
		}
	}
	got := records(t, a)
	if len(got) < 15 || len(got) > 60 || got[len(got)-1].Action != "call99" || got[len(got)-1].Seq != 100 {
		t.Errorf("%d lines, the last is %+v", len(got), got[len(got)-1])
	}
	aside, err := filepath.Glob(filepath.Join(dir, AuditName+".[0-9]*"))
	if err != nil || len(aside) != 3 {
		t.Errorf("put aside: %q, %v", aside, err)
	}
	for i := 1; i < len(got); i++ {
		if got[i].Seq != got[i-1].Seq+1 {
			t.Errorf("line %d follows line %d", got[i].Seq, got[i-1].Seq)
		}
	}
}

// A log that an earlier release began goes on, and what is new is chained.
func TestAnOlderLogGoesOn(t *testing.T) {
	a := OpenAudit(filepath.Join(t.TempDir(), AuditName), nil)
	old := `{"schema":"stet.audit.v1","time":"2026-01-02T03:04:05Z","id":"1","phase":"begin","action":"Delete"}` + "\n"
	if err := os.WriteFile(a.Path(), []byte(old+old), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Note(Record{Action: "new"}); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Verify(); n != 3 || err != nil {
		t.Errorf("%d lines, %v", n, err)
	}
	changeLine(t, a.Path(), 1, func(string) string { return "" })
	changeLine(t, a.Path(), 0, func(l string) string { return strings.Replace(l, "Delete", "Nothing", 1) })
	if _, err := a.Verify(); !errors.Is(err, ErrAuditChanged) {
		t.Errorf("verify: %v", err)
	}
}
