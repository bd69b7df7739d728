package foreigntest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/settings"
)

// events decodes every recorded payload, and many invalid ones.
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
	if notice := c.Adapter.Notice("one\n\"line\""); notice != nil && (!json.Valid(notice) || strings.Count(string(notice), "\n") != 1 || !strings.Contains(string(notice), `one\n\"line\"`)) {
		t.Errorf("a notice is %q, which is not one line of JSON with the text", notice)
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

// existing are settings that a user may have.
var existing = []string{
	"", "{}", "{}\n", "{\n  \"a\": 1\n}\n", "{\n\t\"a\": {\"b\": []}\n}", "\ufeff{\r\n    \"a\": 1\r\n}\r\n", `{"a":1,"hooks":{}}`,
	"{\n  // mine\n  \"hooks\": {}, /* all */\n}\n", "{\n  \"hooks\": {\n    \"Stop\": [ ],\n    \"preToolUse\": [{\"mine\": true}]\n  }\n}\n",
	"{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]}]},\"version\":1}",
}

// tables are settings in TOML that a user may have.
var tables = []string{
	"", "\n", "model = \"x\"", "model = \"x\"\n", "# mine\n[a]\nb = 1\n\n\n", "[a]\r\nb = 1\r\n", "[mcp_servers.other]\ncommand = \"x\"\n",
	"[hooks.state.\"/h/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:0\"",
}

// roundTrip applies a change to each kind of settings and reverts it.
func roundTrip(t *testing.T, change foreign.Change) {
	t.Helper()
	kinds := existing
	if change.Block != nil {
		kinds = tables
	}
	for i, content := range kinds {
		dir := t.TempDir()
		change.Path = filepath.Join(dir, filepath.Base(change.Path))
		if content != "" && change.Content == nil {
			save(t, change.Path, []byte(content))
		}
		before := snapshot(t, dir)
		if r, err := settings.Apply(change); err != nil || !r.Changed() {
			t.Errorf("%s: settings %d: %v", change.Path, i, err)
		}
		if r, err := settings.Apply(change); err != nil || r.Changed() {
			t.Errorf("%s: settings %d: the second time: %v, %v", change.Path, i, r.Changed(), err)
		}
		if _, err := settings.Revert(change); err != nil {
			t.Errorf("%s: settings %d: %v", change.Path, i, err)
		}
		if after := snapshot(t, dir); !maps.Equal(before, after) {
			t.Errorf("%s: settings %d: there was %q, there is %q", change.Path, i, before, after)
		}
	}
}

// connection checks the changes of files, makes them and reverts them.
func (c Config) connection(t *testing.T) {
	for _, program := range programs {
		c.connectionOf(t, append(slices.Clone(program), "hook", c.Adapter.Name()))
	}
}

// programs are commands that are easy and hard to write into settings.
var programs = [][]string{
	{"/opt/a b/stet"},
	{"/opt/stet", "--store", "/home/o'brien/\"a\" \\b & <c> $d"},
	{"/opt/caf\xe9/stet", "--store", "/home/caf\xe9/it's"},
}

func (c Config) connectionOf(t *testing.T, command []string) {
	h, project := c.Home(t), t.TempDir()
	for _, dir := range []string{"", project} {
		con := foreign.Connect{Command: command, Project: dir}
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
				if !json.Valid([]byte(e.Value)) || !utf8.ValidString(e.Value) || e.Ours == "" || len(e.List) == 0 {
					t.Errorf("%s: entry %+v", change.Path, e)
				}
			}
			if !utf8.Valid(change.Content) || bytes.ContainsRune(change.Content, utf8.RuneError) {
				t.Errorf("%s: the content is no text", change.Path)
			}
			roundTrip(t, change)
		}
	}
}

// tools registers a server of tools and removes it. One with the same name that the
// user registered stays.
func (c Config) tools(t *testing.T) {
	for _, program := range programs {
		c.toolsOf(t, append(slices.Clone(program), "mcp", "--agent="+c.Adapter.Name()))
	}
}

func (c Config) toolsOf(t *testing.T, command []string) {
	h, project := c.Home(t), t.TempDir()
	for _, dir := range []string{"", project} {
		con := foreign.Connect{Command: command, Project: dir}
		changes, err := c.Adapter.Tools(h, con)
		if err != nil {
			t.Errorf("tools in %q: %v", dir, err)
		}
		below := h.Home
		if dir != "" {
			below = dir
		}
		for _, change := range changes {
			if rel, err := filepath.Rel(below, change.Path); err != nil || strings.HasPrefix(rel, "..") {
				t.Errorf("the file %s is not below %s", change.Path, below)
			}
			roundTrip(t, change)
			own(t, change)
		}
	}
}

// own checks that a server that the user registered under our name stays.
func own(t *testing.T, change foreign.Change) {
	t.Helper()
	change.Path = filepath.Join(t.TempDir(), filepath.Base(change.Path))
	text := ""
	if change.Block != nil {
		text = "[" + change.Block.Table + "]\ncommand = \"mine\"\n"
	} else {
		e := change.Hooks[0]
		text = `{"` + strings.Join(append(e.List, e.Key), `":{"`) + `":{"command":"mine"}` + strings.Repeat("}", len(e.List)+1)
	}
	save(t, change.Path, []byte(text))
	for name, step := range map[string]func(foreign.Change) (settings.Result, error){"apply": settings.Apply, "revert": settings.Revert} {
		if r, err := step(change); err != nil || r.Changed() {
			t.Errorf("%s of a server that is the user's: %q, %v", name, r.After, err)
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
