package purge_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/purge"
)

// The events that hooks keep beside the store hold what the agent was asked and what its
// tools wrote.
func TestEventsBesideTheStore(t *testing.T) {
	w := newWorld(t, false)
	events := filepath.Join(w.store+stet.HooksSuffix, "agent", "session", "00000001.jsonl")
	must(t, os.MkdirAll(filepath.Dir(events), 0o700))
	// The secret is in the second window of a search, too.
	line := `{"payload":{"prompt":"use ` + secret + ` please"}}`
	text := line + "\n" + strings.Repeat("x", 2<<20) + "\n" + line + "\n"
	must(t, os.WriteFile(events, []byte(text), 0o600))
	db := w.open()
	defer db.Close()

	target := purge.Target{Secrets: [][]byte{[]byte(secret)}}
	plan, res := w.purge(db, target)
	if len(plan.Beside) != 1 || plan.Beside[0] != events || res.Files != 1 || len(res.Remains) != 0 {
		t.Errorf("found %q, masked %d, left %+v", plan.Beside, res.Files, res.Remains)
	}
	data, err := os.ReadFile(events)
	must(t, err)
	if want := strings.ReplaceAll(text, secret, strings.Repeat("*", len(secret))); string(data) != want {
		t.Errorf("%d bytes, wanted %d; begins with %.80q, ends with %q", len(data), len(want), data, data[len(data)-60:])
	}
	plan, err = w.purger(db).Find(t.Context(), target)
	must(t, err)
	if !plan.Empty() {
		t.Errorf("found again: %+v", plan)
	}
}
