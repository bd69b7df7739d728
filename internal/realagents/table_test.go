package realagents_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stet-dev/stet/internal/realagents"
)

func TestMain(m *testing.M) {
	code := realagents.Main(m)
	results.print()
	os.Exit(code)
}

// columns are the steps of the whole way.
var columns = []string{"connect", "capture", "words", "rewind", "carry on", "undo", "disconnect", "MCP", "notice", "approval", "no program", "no store", "signal INT", "signal KILL"}

// table is what was seen to work.
type table struct {
	mu   sync.Mutex
	rows map[string]map[string]string
}

var results = table{rows: map[string]map[string]string{}}

func (r *table) set(agent, column, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows[agent] == nil {
		r.rows[agent] = map[string]string{}
	}
	if r.rows[agent][column] != "FAILED" {
		r.rows[agent][column] = value
	}
}

// print prints the table in the process that ran the tests.
func (r *table) print() {
	if len(r.rows) == 0 {
		return
	}
	line := func(first string, cell func(string) string) {
		text := fmt.Sprintf("%-12s", first)
		for _, c := range columns {
			text += fmt.Sprintf("  %-10s", cell(c))
		}
		fmt.Println(strings.TrimRight(text, " "))
	}
	line("agent", func(c string) string { return c })
	for _, a := range realagents.All() {
		if row := r.rows[a.Name]; row != nil {
			line(a.Name, func(c string) string {
				if row[c] == "" {
					return "-"
				}
				return row[c]
			})
		}
	}
}

// step runs a step of the whole way, which ends where one fails.
func step(t *testing.T, agent, column string, run func(t *testing.T)) {
	t.Helper()
	results.set(agent, column, "FAILED")
	if !t.Run(strings.ReplaceAll(column, " ", "_"), run) {
		t.FailNow()
	}
	results.mu.Lock()
	results.rows[agent][column] = "ok"
	results.mu.Unlock()
}

// each runs a test for each agent, or for some.
func each(t *testing.T, run func(t *testing.T, a realagents.Agent), names ...string) {
	realagents.Need(t)
	for _, a := range realagents.All() {
		if len(names) == 0 || strings.Contains(" "+strings.Join(names, " ")+" ", " "+a.Name+" ") {
			t.Run(a.Name, func(t *testing.T) { run(t, a) })
		}
	}
}
