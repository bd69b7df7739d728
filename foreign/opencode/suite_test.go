package opencode_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/foreigntest"
	"github.com/stet-dev/stet/foreign/opencode"
)

const (
	mainID = "ses_e1bbe0edbffeKL23iIs3OCYoU9"
	subID  = "ses_e1bbd3289ffe8HyteRQqFwWCe2"
)

// home makes a home with a database of the recorded rows.
func home(t testing.TB) foreign.Host {
	dir := t.TempDir()
	path := filepath.Join(dir, ".local", "share", "opencode", "opencode.db")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db := write(t, path)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return foreign.Host{Home: dir}
}

// write makes the database and returns it open, with its log.
func write(t testing.TB, path string) *sqlite3.Conn {
	t.Helper()
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db, "PRAGMA journal_mode=WAL; PRAGMA foreign_keys=OFF")
	exec(t, db, string(load(t, "db-schema.sql")))
	long := exported(t)
	for _, table := range []string{"session", "message", "part"} {
		var rows []map[string]any
		if err := json.Unmarshal(load(t, "db-"+table+".json"), &rows); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if data, ok := row["data"].(string); ok && !json.Valid([]byte(data)) {
				row["data"] = long[row["id"].(string)] // the recording cut long texts
			}
			raw, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			insert(t, db, table, raw)
		}
	}
	return db
}

// insert adds a row that is given as JSON.
func insert(t testing.TB, db *sqlite3.Conn, table string, row []byte) {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(row, &fields); err != nil {
		t.Fatal(err)
	}
	columns, values := "", ""
	for name := range fields {
		if columns != "" {
			columns, values = columns+", ", values+", "
		}
		columns, values = columns+name, values+"?1 ->> '$."+name+"'"
	}
	s, _, err := db.Prepare("INSERT INTO " + table + " (" + columns + ") VALUES (" + values + ")")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.BindText(1, string(row)); err != nil {
		t.Fatal(err)
	}
	if s.Step(); s.Err() != nil {
		t.Fatal(s.Err())
	}
}

// exported returns the data of the rows of the recorded export.
func exported(t testing.TB) map[string]string {
	var export struct {
		Messages []struct {
			Info  map[string]any
			Parts []map[string]any
		}
	}
	if err := json.Unmarshal(load(t, "export.json"), &export); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	add := func(fields map[string]any) {
		id := fields["id"].(string)
		for _, key := range []string{"id", "sessionID", "messageID"} {
			delete(fields, key)
		}
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		out[id] = string(data)
	}
	for _, m := range export.Messages {
		add(m.Info)
		for _, p := range m.Parts {
			add(p)
		}
	}
	return out
}

func exec(t testing.TB, db *sqlite3.Conn, sql string) {
	t.Helper()
	if err := db.Exec(sql); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// payloads are what the plugin sent from a real run.
func payloads(t testing.TB) (out []foreigntest.Payload) {
	for _, p := range []struct {
		file, event string
		kind        foreign.EventKind
	}{
		{"session.created", "session.created", foreign.SessionStart},
		{"chat.message", "chat.message", foreign.TurnStart},
		{"tool.execute.before", "tool.execute.before", foreign.ToolStart},
		{"subagent.chat.message", "chat.message", foreign.TaskStart},
		{"subagent.session.idle", "session.idle", foreign.TaskEnd},
		{"tool.execute.after", "tool.execute.after", foreign.ToolEnd},
		{"session.idle", "session.idle", foreign.TurnEnd},
	} {
		out = append(out, foreigntest.Payload{Event: p.event, Kind: p.kind, JSON: load(t, filepath.Join("payloads", p.file+".json"))})
	}
	return out
}

func TestSuite(t *testing.T) {
	foreigntest.Run(t, foreigntest.Config{
		Adapter: opencode.New(), Home: home, Payloads: payloads(t),
		Sessions: []foreigntest.Session{{
			ID: mainID, Workspace: "/workspace",
			Prompts: []string{`"turn one: make a file`, `"turn two: change it`, `"turn three: use a helper`},
			Tools:   []string{"write", "bash", "edit", "bash", "task", "probe_ping"},
			Kinds:   []foreign.Tool{foreign.EditTool, foreign.ShellTool, foreign.EditTool, foreign.ShellTool, foreign.TaskTool, foreign.OtherTool},
			Says:    "third done", Model: "fake-model", Tokens: true, Command: "opencode",
		}, {
			ID: subID, Workspace: "/workspace", Parent: mainID,
			Prompts: []string{"helper"}, Tools: []string{"write"}, Says: "sub done", Model: "fake-model", Tokens: true,
		}},
	})
}
