package opencode_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/opencode"
)

var ctx = context.Background()

func dbPath(h foreign.Host) string {
	return filepath.Join(h.Home, ".local", "share", "opencode", "opencode.db")
}

// session finds a session of a home.
func session(t *testing.T, h foreign.Host, id string) foreign.Session {
	t.Helper()
	for s, err := range opencode.New().Sessions(ctx, h) {
		if err != nil {
			t.Fatal(err)
		}
		if s.ID == id {
			return s
		}
	}
	t.Fatalf("no session %s", id)
	return foreign.Session{}
}

func read(s foreign.Session, from foreign.Mark) (found []foreign.Turn, errs []error) {
	for turn, err := range opencode.New().Turns(ctx, s, from) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, turn)
	}
	return found, errs
}

func ids(turns []foreign.Turn) string {
	var out []string
	for _, t := range turns {
		out = append(out, t.ID+"<"+t.Follows)
	}
	return strings.Join(out, " ")
}

// live is a home whose database another connection has open, as OpenCode has it.
func live(t *testing.T) (h foreign.Host, exec func(string), add func(table, row string)) {
	t.Helper()
	h = foreign.Host{Home: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(dbPath(h)), 0o700); err != nil {
		t.Fatal(err)
	}
	db := write(t, dbPath(h))
	t.Cleanup(func() { db.Close() })
	return h, func(sql string) { execOn(t, db, sql) }, func(table, row string) { insert(t, db, table, []byte(row)) }
}

var execOn = exec

const (
	newUser  = `{"id":"msg_1e4430000001aaaaaaaaaaaaaa","session_id":"` + mainID + `","time_created":1794830960000,"time_updated":1794830960000,"data":"{\"role\":\"user\"}"}`
	newText  = `{"id":"prt_1e4430000001aaaaaaaaaaaaaa","message_id":"msg_1e4430000001aaaaaaaaaaaaaa","session_id":"` + mainID + `","time_created":1794830960000,"time_updated":1794830960000,"data":"{\"type\":\"text\",\"text\":\"four\"}"}`
	newReply = `{"id":"msg_1e4430000002aaaaaaaaaaaaaa","session_id":"` + mainID + `","time_created":1794830961000,"time_updated":1794830961000,"data":"{\"role\":\"assistant\",\"parentID\":\"msg_1e4430000001aaaaaaaaaaaaaa\",\"finish\":\"stop\",\"time\":{\"completed\":1794830962000}}"}`
)

func TestReadingWhileOpenCodeWrites(t *testing.T) {
	h, _, add := live(t)
	s := session(t, h, mainID)
	turns, errs := read(s, "")
	if len(turns) != 3 || errs != nil {
		t.Fatalf("got %d turns, %v", len(turns), errs)
	}
	add("message", newUser)
	add("part", newText)
	more, errs := read(s, turns[2].Mark)
	if len(more) != 1 || errs != nil || more[0].Prompt != "four" || more[0].Done || more[0].Follows != turns[2].ID {
		t.Fatalf("got %+v, %v", more, errs)
	}
	add("message", newReply)
	again, errs := read(s, more[0].Mark)
	if len(again) != 1 || errs != nil || !again[0].Done {
		t.Errorf("got %+v, %v", again, errs)
	}
	if rest, errs := read(s, again[0].Mark); len(rest) != 0 || errs != nil {
		t.Errorf("got %+v, %v", rest, errs)
	}
}

// A session has a title of no meaning until the model has made one, and OpenCode writes
// prompts of its own.
func TestTitles(t *testing.T) {
	h, exec, add := live(t)
	exec("UPDATE session SET title = 'New session - 2026-11-16T12:00:00.000Z' WHERE id = '" + mainID + "'")
	s := session(t, h, mainID)
	if s.Title != "" {
		t.Errorf("title %q", s.Title)
	}
	exec("UPDATE session SET title = 'New session - the plan' WHERE id = '" + mainID + "'")
	if s = session(t, h, mainID); s.Title != "New session - the plan" {
		t.Errorf("title %q", s.Title)
	}
	add("message", newUser)
	add("part", strings.Replace(newText, `\"text\":`, `\"synthetic\":true,\"text\":`, 1))
	turns, errs := read(s, "")
	if len(turns) != 4 || errs != nil || turns[2].Automatic || !turns[3].Automatic || turns[3].Prompt != "four" {
		t.Errorf("got %+v, %v", turns, errs)
	}
}

func TestDeletedTurn(t *testing.T) {
	h, exec, add := live(t)
	s := session(t, h, mainID)
	turns, _ := read(s, "")
	exec("DELETE FROM message WHERE id >= '" + turns[1].ID + "' AND session_id = '" + mainID + "'")
	add("message", newUser)
	add("part", newText)
	if _, errs := read(s, turns[2].Mark); len(errs) != 1 || !errors.Is(errs[0], foreign.ErrMark) {
		t.Errorf("from the mark: %v", errs)
	}
	left, errs := read(s, "")
	if len(left) != 2 || errs != nil || left[1].Follows != turns[0].ID {
		t.Errorf("got %s, %v", ids(left), errs)
	}
}

func TestTurnThatGrewBeforeTheMark(t *testing.T) {
	h, _, add := live(t)
	s := session(t, h, mainID)
	turns, _ := read(s, "")
	add("message", strings.ReplaceAll(newReply, "msg_1e4430000001aaaaaaaaaaaaaa", turns[2].ID))
	if _, errs := read(s, turns[2].Mark); len(errs) != 1 || !errors.Is(errs[0], foreign.ErrMark) {
		t.Errorf("got %v", errs)
	}
}

func TestDamagedRowsAreReported(t *testing.T) {
	h, exec, _ := live(t)
	exec("UPDATE part SET data = 'garbage' WHERE id = (SELECT id FROM part WHERE data LIKE '%first done%' AND data LIKE '%history%')")
	exec("UPDATE part SET data = '\"' || printf('%.*c', 9000000, 'x') || '\"' WHERE data LIKE '%second done%' AND data LIKE '%history%'")
	turns, errs := read(session(t, h, mainID), "")
	if len(turns) != 3 || len(errs) != 2 || !foreign.Unreadable(errs[0]) || !foreign.Unreadable(errs[1]) {
		t.Fatalf("got %d turns, %v", len(turns), errs)
	}
	if len(turns[0].Steps) != 2 || len(turns[1].Steps) != 2 || len(turns[2].Steps) != 3 {
		t.Errorf("steps: %d, %d, %d", len(turns[0].Steps), len(turns[1].Steps), len(turns[2].Steps))
	}
}

func TestNothingIsWritten(t *testing.T) {
	for _, name := range []string{"closed", "only the log", "open"} {
		t.Run(name, func(t *testing.T) {
			var h foreign.Host
			switch name {
			case "closed":
				h = home(t)
			case "open":
				h, _, _ = live(t)
			case "only the log":
				from, _, _ := live(t)
				h = foreign.Host{Home: t.TempDir()}
				if err := os.MkdirAll(filepath.Dir(dbPath(h)), 0o700); err != nil {
					t.Fatal(err)
				}
				for _, end := range []string{"", "-wal"} {
					data, err := os.ReadFile(dbPath(from) + end)
					if err == nil {
						err = os.WriteFile(dbPath(h)+end, data, 0o600)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			before := contents(t, filepath.Dir(dbPath(h)))
			s := session(t, h, mainID)
			if turns, errs := read(s, ""); len(turns) != 3 || errs != nil {
				t.Errorf("got %d turns, %v", len(turns), errs)
			}
			after := contents(t, filepath.Dir(dbPath(h)))
			for path, data := range after {
				if old, ok := before[path]; !ok || !bytes.Equal(old, data) && !strings.HasSuffix(path, "-shm") {
					t.Errorf("%s is new or changed", path)
				}
			}
		})
	}
}

func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = data
	}
	return out
}

func TestNotADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "opencode.db")
	for _, content := range []string{"", "text", "SQLite format 3\x00" + strings.Repeat("x", 200)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, err := range opencode.New().SessionAt(ctx, foreign.Host{}, path) {
			if !foreign.Unreadable(err) {
				t.Errorf("%.20q: %v", content, err)
			}
		}
	}
}

func TestOneSessionOfADatabase(t *testing.T) {
	h := home(t)
	for id, want := range map[string]int{mainID: 2, subID: 1, "ses_no": 0} {
		n := 0
		for _, err := range opencode.New().SessionAt(ctx, h, dbPath(h)+"#"+id) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != want {
			t.Errorf("%s: %d sessions, want %d", id, n, want)
		}
	}
}

func TestCutIsAnExportWithNewIDs(t *testing.T) {
	h := home(t)
	s := session(t, h, mainID)
	turns, _ := read(s, "")
	for i, turn := range turns {
		c, err := opencode.New().Cut(ctx, h, s, turn)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(c.Created[0])
		if err != nil {
			t.Fatal(err)
		}
		var export struct {
			Info     struct{ ID, ProjectID, Directory string }
			Messages []struct {
				Info  struct{ ID, SessionID, ParentID, Role string }
				Parts []struct{ ID, SessionID, MessageID string }
			}
		}
		if err := json.Unmarshal(data, &export); err != nil {
			t.Fatal(err)
		}
		if export.Info.ID != c.Command[2] || export.Info.ID == mainID || export.Info.Directory != "/workspace" || export.Info.ProjectID == "" || c.Prepare[1] != "import" {
			t.Errorf("turn %d: %+v, %+v", i, c, export.Info)
		}
		users, last := 0, ""
		for _, m := range export.Messages {
			if m.Info.SessionID != export.Info.ID || m.Info.ID <= last {
				t.Errorf("turn %d: message %+v after %s", i, m.Info, last)
			}
			last = m.Info.ID
			if m.Info.Role == "user" {
				users++
			} else if m.Info.ParentID == "" || bytes.Contains(data, []byte(turns[0].ID)) {
				t.Errorf("turn %d: answer %+v", i, m.Info)
			}
			for _, p := range m.Parts {
				if p.MessageID != m.Info.ID || p.SessionID != export.Info.ID {
					t.Errorf("turn %d: part %+v", i, p)
				}
			}
		}
		if users != i+1 {
			t.Errorf("turn %d: %d prompts", i, users)
		}
	}
}

func TestConnectionNamesTheCommand(t *testing.T) {
	changes, err := opencode.New().Connection(foreign.Host{Home: "/h"}, foreign.Connect{Command: []string{`/a "b/stet`, "hook", "opencode"}})
	if err != nil || changes[0].Path != filepath.Join("/h", ".config", "opencode", "plugin", "stet.js") || !bytes.Contains(changes[0].Content, []byte(`const command = ["/a \"b/stet","hook","opencode"]`)) {
		t.Errorf("got %+v, %v", changes, err)
	}
}
