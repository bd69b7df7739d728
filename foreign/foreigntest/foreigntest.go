// Package foreigntest is the suite that every adapter of an agent must pass. It
// checks what the rest of stet expects of an adapter, on sessions that the agent
// itself wrote: that reading turns as a whole, repeatedly and piece by piece gives
// the same result, that damage affects only the damaged parts, that a cut leaves the
// old session unchanged, and that hook payloads are decoded.
//
//	func TestSuite(t *testing.T) {
//		foreigntest.Run(t, foreigntest.Config{Adapter: claudecode.New(), Home: home, Sessions: want, Payloads: payloads})
//	}
//
// Peculiarities of one agent are left to the tests of its package.
package foreigntest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stet-dev/stet/foreign"
)

// Config describes the adapter to test.
type Config struct {
	Adapter foreign.Adapter
	// Home makes a new home with the recorded sessions. Each case uses its own.
	Home func(t testing.TB) foreign.Host
	// Sessions are the sessions of the home, in any order.
	Sessions []Session
	// Lines means that a session is one file of JSON lines at its Path that grows at its
	// end. The cases about damage and growth need that.
	Lines bool
	// Payloads are recorded payloads in the order in which they came.
	Payloads []Payload
}

// Session is what is expected of a session.
type Session struct {
	ID, Workspace, Parent string
	// Prompts are the first lines of the prompts, in order.
	Prompts []string
	// Automatic are the prompts that no person typed. A conversation is not named after
	// them.
	Automatic []string
	// Tools are the names of the tools in the order of their calls.
	Tools []string
	// Kinds are the kinds of these tools; nil is not checked.
	Kinds []foreign.Tool
	// Says is a text that some reply contains.
	Says  string
	Model string
	// Tokens means that each answered turn has token counts.
	Tokens bool
	// Command is the program that continues a cut session; "" means that the session
	// cannot be cut.
	Command string
}

// Payload is a recorded payload of a hook.
type Payload struct {
	Event string
	JSON  []byte
	Kind  foreign.EventKind
}

// Run runs the suite.
func Run(t *testing.T, c Config) {
	t.Run("detect", c.detect)
	t.Run("sessions", c.sessions)
	t.Run("turns", c.turns)
	t.Run("marks", c.marks)
	t.Run("files", c.files)
	t.Run("cut", c.cut)
	t.Run("events", c.events)
	t.Run("connection", c.connection)
	t.Run("tools", c.tools)
	if c.Lines {
		t.Run("growth", c.growth)
		t.Run("torn", c.torn)
		t.Run("damage", c.damage)
		t.Run("memory", c.memory)
		t.Run("gone", c.gone)
	}
}

func (c Config) detect(t *testing.T) {
	ctx := context.Background()
	in, err := c.Adapter.Detect(ctx, c.Home(t))
	if err != nil || !in.Found || in.Settings == "" {
		t.Errorf("in a home with the agent: %+v, %v", in, err)
	}
	empty := foreign.Host{Home: t.TempDir()}
	if in, err = c.Adapter.Detect(ctx, empty); err != nil || in.Found {
		t.Errorf("in an empty home: %+v, %v", in, err)
	}
	for s, err := range c.Adapter.Sessions(ctx, empty) {
		t.Errorf("an empty home has %+v, %v", s, err)
	}
}

func (c Config) sessions(t *testing.T) {
	h := c.Home(t)
	have := c.list(t, h)
	if len(have) != len(c.Sessions) {
		t.Errorf("%d sessions, want %d", len(have), len(c.Sessions))
	}
	for _, want := range c.Sessions {
		s, ok := have[want.ID]
		if !ok {
			t.Errorf("no session %s", want.ID)
			continue
		}
		if s.Agent != c.Adapter.Name() || s.Path == "" || s.Size <= 0 || s.Workspace != want.Workspace || s.Parent != want.Parent {
			t.Errorf("session %s: %+v", want.ID, s)
		}
		if s.Started.IsZero() || s.Updated.Before(s.Started) {
			t.Errorf("session %s: started %v, updated %v", want.ID, s.Started, s.Updated)
		}
		found := false
		for at, err := range c.Adapter.SessionAt(context.Background(), h, s.Path) {
			if err != nil {
				t.Errorf("session at %s: %v", s.Path, err)
			}
			found = found || at.ID == s.ID
		}
		if !found {
			t.Errorf("session %s is not at its path %s", s.ID, s.Path)
		}
	}
}

func (c Config) turns(t *testing.T) {
	h := c.Home(t)
	have := c.list(t, h)
	for _, want := range c.Sessions {
		s, ok := have[want.ID]
		if !ok {
			continue // reported by the case about sessions
		}
		turns := c.read(t, s, "")
		check(t, want, turns)
		if diff := cmp.Diff(turns, c.read(t, s, "")); diff != "" {
			t.Errorf("session %s: the second reading differs:\n%s", s.ID, diff)
		}
		ids := map[string]bool{}
		for _, turn := range turns {
			if turn.ID == "" || ids[turn.ID] {
				t.Errorf("session %s: the turn id %q is empty or not unique", s.ID, turn.ID)
			}
			if turn.Follows != "" && turn.Follows != foreign.Beginning && !ids[turn.Follows] {
				t.Errorf("session %s: turn %s follows %s, which is not before it", s.ID, turn.ID, turn.Follows)
			}
			ids[turn.ID] = true
		}
	}
}

// marks reads from each mark.
func (c Config) marks(t *testing.T) {
	h := c.Home(t)
	for _, s := range c.list(t, h) {
		turns := c.read(t, s, "")
		for k, turn := range turns {
			if turn.Mark == "" && turn.Done {
				t.Errorf("session %s: turn %d has no mark", s.ID, k)
				continue
			}
			rest := turns[k+1:]
			if !turn.Done {
				rest = turns[k:]
			}
			got, err := c.collect(s, turn.Mark)
			if errors.Is(err, foreign.ErrMark) && rewound(rest) {
				continue // a later turn needs one before the mark
			}
			if err != nil {
				t.Errorf("session %s: from the mark of turn %d: %v", s.ID, k, err)
			}
			if diff := cmp.Diff(rest, got, sameTurn...); diff != "" {
				t.Errorf("session %s: from the mark of turn %d:\n%s", s.ID, k, diff)
			}
		}
		if _, err := c.collect(s, "this is not a mark"); !errors.Is(err, foreign.ErrMark) {
			t.Errorf("session %s: a mark that is none gives %v", s.ID, err)
		}
	}
}

// rewound reports whether a turn does not follow the one before it.
func rewound(turns []foreign.Turn) bool {
	for i := 1; i < len(turns); i++ {
		if turns[i].Follows != "" && turns[i].Follows != turns[i-1].ID {
			return true
		}
	}
	return len(turns) > 0 && turns[0].Follows != ""
}

// sameTurn compares turns of two readings, of which one began at a mark: the first
// turn after it may leave Follows empty, and a reading that ended earlier does not
// see a cost that the agent wrote after a turn. Its mark may lie before or after
// lines that belong to no turn.
var sameTurn = []cmp.Option{
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(foreign.Turn{}, "Follows", "Mark"),
	cmpopts.IgnoreFields(foreign.Usage{}, "CostUSD"),
}

func (c Config) files(t *testing.T) {
	h := c.Home(t)
	for _, s := range c.list(t, h) {
		names := map[string]bool{}
		for f, err := range c.Adapter.Files(context.Background(), s) {
			if err != nil || f.Name == "" || names[f.Name] {
				t.Errorf("session %s: file %q: %v", s.ID, f.Name, err)
				continue
			}
			names[f.Name] = true
			if f.Path == "" {
				if len(f.Data) == 0 {
					t.Errorf("session %s: file %s has neither a path nor data", s.ID, f.Name)
				}
				continue
			}
			if _, err := os.Stat(f.Path); err != nil || len(f.Data) != 0 {
				t.Errorf("session %s: file %s at %s has %d bytes of data: %v", s.ID, f.Name, f.Path, len(f.Data), err)
			}
		}
		if len(names) == 0 {
			t.Errorf("session %s has no files", s.ID)
		}
	}
}

// list returns the sessions by id.
func (c Config) list(t testing.TB, h foreign.Host) map[string]foreign.Session {
	t.Helper()
	out := map[string]foreign.Session{}
	for s, err := range c.Adapter.Sessions(context.Background(), h) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := out[s.ID]; ok {
			t.Errorf("session %s comes twice", s.ID)
		}
		if _, ok := out[s.Parent]; s.Parent != "" && !ok {
			t.Errorf("session %s comes before its parent %s", s.ID, s.Parent)
		}
		out[s.ID] = s
	}
	return out
}

// read reads turns without an error.
func (c Config) read(t testing.TB, s foreign.Session, from foreign.Mark) []foreign.Turn {
	t.Helper()
	turns, err := c.collect(s, from)
	if err != nil {
		t.Errorf("session %s: %v", s.ID, err)
	}
	return turns
}

// collect reads turns, and the first error.
func (c Config) collect(s foreign.Session, from foreign.Mark) (turns []foreign.Turn, first error) {
	for turn, err := range c.Adapter.Turns(context.Background(), s, from) {
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		turns = append(turns, turn)
	}
	return turns, first
}

// snapshot returns the files below a directory with their content.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (p Payload) String() string { return fmt.Sprintf("%s %.80s", p.Event, p.JSON) }

// without returns the keys of a map that another one lacks, sorted.
func without(after, before map[string]string) (added []string) {
	for path := range after {
		if _, ok := before[path]; !ok {
			added = append(added, path)
		}
	}
	slices.Sort(added)
	return added
}
