package foreigntest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
)

// events decodes every recorded payload, and much that is not one.
func (c Config) events(t *testing.T) {
	for _, p := range c.Payloads {
		e, err := c.Adapter.Event(p.Event, p.JSON)
		if err != nil || e.Kind != p.Kind {
			t.Errorf("%v: kind %d, want %d, %v", p, e.Kind, p.Kind, err)
			continue
		}
		switch {
		case e.Kind == foreign.NoEvent:
		case e.Session == "" || e.Workspace == "" || string(e.Raw) != string(p.JSON):
			t.Errorf("%v: %+v", p, e)
		case (e.Kind == foreign.ToolStart || e.Kind == foreign.ToolEnd) && (e.Call == nil || e.Call.Name == ""):
			t.Errorf("%v has no call", p)
		}
	}
	names := []string{"", "NoSuchEvent"}
	for _, p := range c.Payloads {
		names = append(names, p.Event)
	}
	for _, name := range names {
		for _, garbage := range []string{"", "null", "[]", "{", `"x"`, "\x00\xff", `{"session_id":7}`, strings.Repeat("[", 1<<16)} {
			if e, err := c.Adapter.Event(name, []byte(garbage)); err == nil && e.Kind != foreign.NoEvent {
				t.Errorf("%s %.20q is an event: %+v", name, garbage, e)
			} else if err != nil && !errors.Is(err, foreign.ErrEvent) {
				t.Errorf("%s %.20q: %v", name, garbage, err)
			}
		}
	}
}

// connection looks at what has to be in which file.
func (c Config) connection(t *testing.T) {
	h, project := c.Home(t), t.TempDir()
	for _, dir := range []string{"", project} {
		con := foreign.Connect{Command: []string{"/opt/a b/stet", "hook", c.Adapter.Name()}, Project: dir}
		changes, err := c.Adapter.Connection(h, con)
		if err != nil || len(changes) == 0 {
			t.Errorf("connection in %q: %v, %v", dir, changes, err)
		}
		below := h.Home
		if dir != "" {
			below = dir
		}
		for _, change := range changes {
			if rel, err := filepath.Rel(below, change.Path); err != nil || strings.HasPrefix(rel, "..") {
				t.Errorf("the file %s is not below %s", change.Path, below)
			}
			if (change.Content == nil) == (change.Hooks == nil) {
				t.Errorf("%s: one of content and hooks must be there", change.Path)
			}
			for _, e := range change.Hooks {
				if !json.Valid([]byte(e.Value)) || e.Ours == "" || !strings.Contains(e.Value, e.Ours) || len(e.List) == 0 {
					t.Errorf("%s: entry %+v", change.Path, e)
				}
			}
		}
	}
}

// FuzzTurns fuzzes the reader of an adapter whose sessions are files of JSON lines. Seeds
// are recorded sessions. session makes the session of a file.
func FuzzTurns(f *testing.F, a foreign.Adapter, session func(path string) foreign.Session, seeds ...string) {
	for _, path := range seeds {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "session.jsonl")
		save(t, path, data)
		s := session(path)
		for turn, err := range a.Turns(context.Background(), s, "") {
			if err != nil && !foreign.Unreadable(err) {
				t.Errorf("the session has a part that is not reported as unreadable: %v", err)
			}
			if err != nil {
				continue
			}
			for _, err := range a.Turns(context.Background(), s, turn.Mark) {
				if err != nil && !foreign.Unreadable(err) && !errors.Is(err, foreign.ErrMark) {
					t.Errorf("from the mark of %s: %v", turn.ID, err)
				}
			}
		}
	})
}

// FuzzEvent fuzzes the decoder of payloads.
func FuzzEvent(f *testing.F, a foreign.Adapter, seeds ...Payload) {
	for _, p := range seeds {
		f.Add(p.Event, p.JSON)
	}
	f.Fuzz(func(t *testing.T, name string, payload []byte) {
		if _, err := a.Event(name, payload); err != nil && !errors.Is(err, foreign.ErrEvent) {
			t.Error(err)
		}
	})
}
