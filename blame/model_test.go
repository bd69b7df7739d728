package blame_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blame"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv/memkv"
)

// modelLine is a line of the model. It carries who wrote it, and the checkpoint that saw it
// first, wherever it goes. No two lines have the same text.
type modelLine struct{ text, who, at string }

// modelFiles are the lines of the files of a workspace, by name.
type modelFiles map[string][]*modelLine

func (m modelFiles) clone() modelFiles {
	out := maps.Clone(m)
	for name := range out {
		out[name] = slices.Clone(out[name])
	}
	return out
}

// model replays a history on lines while the same history is made with checkpoints.
type model struct {
	t      fataler
	pick   func(n int, what string) int // a number below n
	w      *checkpoint.Workspace
	reader *blame.Reader
	files  modelFiles
	saved  map[string]modelFiles // by checkpoint
	ids    []string              // of checkpoints, oldest first
	undo   []modelMove
	redo   []modelMove
	turn   map[string]uint64
	lines  int
	said   []string // for failures
}

type modelMove struct{ before, after string }

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

func (m *model) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("%v\n%s", err, strings.Join(m.said, "\n"))
	}
}

func (m *model) say(format string, args ...any) {
	m.said = append(m.said, fmt.Sprintf(format, args...))
}

// write makes the directory what the model says.
func (m *model) write() {
	m.t.Helper()
	for _, name := range modelNames {
		path := filepath.Join(m.w.Path(), name)
		lines, ok := m.files[name]
		if !ok {
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				m.must(err)
			}
			continue
		}
		var text strings.Builder
		for _, l := range lines {
			text.WriteString(l.text)
		}
		m.must(os.MkdirAll(filepath.Dir(path), 0o755))
		m.must(os.WriteFile(path, []byte(text.String()), 0o600))
	}
}

var modelNames = []string{"a.txt", "b.txt", "dir/c.txt", "dir/sub/d.txt"}

func (m *model) newLine(who string) *modelLine {
	m.lines++
	return &modelLine{text: fmt.Sprintf("line %d of %s\n", m.lines, who), who: who}
}

// edit changes a file at random.
func (m *model) edit(who string) {
	name := modelNames[m.pick(len(modelNames), "file")]
	lines, ok := m.files[name]
	switch what := m.pick(5, "edit"); {
	case !ok || len(lines) == 0:
		for range 6 {
			lines = append(lines, m.newLine(who))
		}
	case what == 0 && len(lines) > 2: // remove
		i := m.pick(len(lines), "line")
		lines = slices.Delete(slices.Clone(lines), i, i+1)
	case what == 1: // change
		lines = slices.Clone(lines)
		lines[m.pick(len(lines), "line")] = m.newLine(who)
	case what == 2 && m.pick(4, "delete") == 0:
		delete(m.files, name)
		m.say("  %s deletes %s", who, name)
		return
	default:
		lines = slices.Insert(slices.Clone(lines), m.pick(len(lines)+1, "line"), m.newLine(who))
	}
	m.files[name] = lines
	m.say("  %s edits %s", who, name)
}

// rename moves a file to a name that is free, and changes it a little.
func (m *model) rename(who string) {
	from, to := modelNames[m.pick(len(modelNames), "from")], modelNames[m.pick(len(modelNames), "to")]
	lines, ok := m.files[from]
	if _, taken := m.files[to]; !ok || taken || len(lines) < 4 {
		m.edit(who)
		return
	}
	delete(m.files, from)
	if m.pick(2, "changed") == 0 {
		lines = slices.Insert(slices.Clone(lines), m.pick(len(lines)+1, "line"), m.newLine(who))
	}
	m.files[to] = lines
	m.say("  %s moves %s to %s", who, from, to)
}

// saw notes that a checkpoint has the files.
func (m *model) saw(id string) {
	for _, lines := range m.files {
		for _, l := range lines {
			if l.at == "" {
				l.at = id
			}
		}
	}
	m.saved[id] = m.files.clone()
	m.ids = append(m.ids, id)
}

func (m *model) checkpoint(t *testing.T, req checkpoint.Request) {
	m.t.Helper()
	m.write()
	res, err := m.w.Checkpoint(t.Context(), req)
	m.must(err)
	m.saw(res.Record.ID)
	m.say("%s: %s %s", res.Record.Name(), req.Conversation, res.Record.Place())
}

// act does one thing of a history.
func (m *model) act(t *testing.T) {
	m.t.Helper()
	switch m.pick(10, "act") {
	case 0, 1, 2, 3:
		m.agentTurn(t)
	case 4: // two agents at once, of which one says what it wrote
		m.together(t)
	case 5:
		m.edit("you")
	case 6:
		m.edit("you")
		m.checkpoint(t, checkpoint.Request{})
	case 7:
		m.back(t, "rewind")
	case 8:
		m.back(t, "undo")
	case 9:
		m.back(t, "redo")
	}
	m.write()
}

func (m *model) next(conv string) uint64 { m.turn[conv]++; return m.turn[conv] }

func (m *model) agentTurn(t *testing.T) {
	conv := []string{"one", "two", "fork-of-one"}[m.pick(3, "agent")]
	turn := m.next(conv)
	m.checkpoint(t, checkpoint.Request{Conversation: conv, Turn: turn, Side: checkpoint.Before})
	who := fmt.Sprintf("%s/%d", conv, turn)
	if m.pick(5, "rename") == 0 {
		m.rename(who)
	} else {
		for range 1 + m.pick(3, "edits") {
			m.edit(who)
		}
	}
	if m.pick(3, "during") == 0 {
		m.checkpoint(t, checkpoint.Request{Conversation: conv, Turn: turn, Tool: "Edit", Auto: true})
		m.edit(who)
	}
	m.checkpoint(t, checkpoint.Request{Conversation: conv, Turn: turn, Side: checkpoint.After})
}

func (m *model) together(t *testing.T) {
	one, two := m.next("one"), m.next("two")
	m.checkpoint(t, checkpoint.Request{Conversation: "one", Turn: one, Side: checkpoint.Before})
	m.checkpoint(t, checkpoint.Request{Conversation: "two", Turn: two, Side: checkpoint.Before})
	m.edit(fmt.Sprintf("two/%d", two))
	m.checkpoint(t, checkpoint.Request{Conversation: "two", Turn: two, Side: checkpoint.After, Touched: modelNames})
	m.checkpoint(t, checkpoint.Request{Conversation: "one", Turn: one, Side: checkpoint.After})
}

// back makes a rewind to a checkpoint, an undo or a redo.
func (m *model) back(t *testing.T, kind string) {
	m.t.Helper()
	var done *checkpoint.Applied
	var to string
	var err error
	switch {
	case kind == "rewind" && len(m.ids) > 0:
		to = m.ids[m.pick(len(m.ids), "to")]
		done, err = m.w.Rewind(t.Context(), checkpoint.RewindRequest{To: to, Exact: true, Scope: checkpoint.FilesOnly}, "")
	case kind == "undo" && len(m.undo) > 0:
		to = m.undo[len(m.undo)-1].before
		done, err = m.w.Undo(t.Context(), &checkpoint.UndoOptions{Choice: checkpoint.Theirs})
	case kind == "redo" && len(m.redo) > 0:
		to = m.redo[len(m.redo)-1].before
		done, err = m.w.Redo(t.Context(), &checkpoint.UndoOptions{Choice: checkpoint.Theirs})
	default:
		return
	}
	m.must(err)
	m.saw(done.Saved.ID)
	m.say("%s: %s to %s", done.Record.Name(), kind, to)
	m.restored(t, done, to)
	m.saw(done.Record.ID)
	move := modelMove{done.Saved.ID, done.Record.ID} // what the next undo or redo reverts
	switch kind {
	case "rewind":
		m.undo, m.redo = append(m.undo, move), nil
	case "undo":
		m.redo, m.undo = append(m.redo, move), m.undo[:len(m.undo)-1]
	case "redo":
		m.undo, m.redo = append(m.undo, move), m.redo[:len(m.redo)-1]
	}
}

// restored takes over, for each file that was changed, the lines of the target. Undo leaves
// alone what its rewind did not change.
func (m *model) restored(t *testing.T, done *checkpoint.Applied, to string) {
	for _, a := range done.Plan.Actions {
		if !a.Changes() || !slices.Contains(modelNames, a.Path) {
			continue
		}
		if lines, ok := m.saved[to][a.Path]; ok {
			m.files[a.Path] = slices.Clone(lines)
		} else {
			delete(m.files, a.Path)
		}
	}
	for _, name := range modelNames {
		var want strings.Builder
		for _, l := range m.files[name] {
			want.WriteString(l.text)
		}
		got, err := os.ReadFile(filepath.Join(m.w.Path(), name))
		if _, ok := m.files[name]; ok && err != nil || string(got) != want.String() {
			m.t.Fatalf("the model has not the files after a rewind: %s\n%s", name, strings.Join(m.said, "\n"))
		}
	}
}

// compare blames the files of a checkpoint, or of the present, and compares.
func (m *model) compare(t *testing.T, at *checkpoint.Record, files modelFiles) {
	m.t.Helper()
	for name, lines := range files {
		file, err := m.reader.File(t.Context(), at, name)
		m.must(err)
		if len(file.Lines) != len(lines) {
			m.t.Fatalf("%s at %s has %d lines, want %d", name, at.Name(), len(file.Lines), len(lines))
		}
		for i, line := range file.Lines {
			o := file.Origins[line.Origin]
			who := string(o.Kind)
			if o.Kind == blame.Agent {
				who = fmt.Sprintf("%s/%d", o.Writer.Conversation, o.Writer.Turn)
			}
			if want := lines[i]; line.Text != want.text || who != want.who || o.At.ID != want.at {
				m.t.Fatalf("%s:%d at %s: %q by %s at %s, want %q by %s at %s\n%s", name, i+1, at.Name(),
					line.Text, who, o.At.ID, want.text, want.who, want.at, strings.Join(m.said, "\n"))
			}
		}
	}
}

// compareNow blames the files of the present.
func (m *model) compareNow(t *testing.T) {
	m.t.Helper()
	res, err := m.w.Present(t.Context())
	m.must(err)
	now, err := m.w.Unsaved(t.Context(), res.Tree)
	m.must(err)
	m.compare(t, now, m.files)
}

// play makes a history and compares all of it.
func (m *model) play(t *testing.T, acts int) {
	m.t.Helper()
	m.edit("you")
	m.checkpoint(t, checkpoint.Request{})
	for range acts {
		m.act(t)
		if m.pick(4, "look") == 0 { // later looks begin with what this one finds
			m.compareNow(t)
		}
	}
	m.compareNow(t)
	for rec, err := range m.w.List(t.Context(), nil) {
		m.must(err)
		if m.pick(4, "compare") == 0 {
			m.compare(t, rec, m.saved[rec.ID])
		}
	}
}

func newModel(t fataler, pick func(int, string) int, w *checkpoint.Workspace, r *blame.Reader) *model {
	return &model{t: t, pick: pick, w: w, reader: r, files: modelFiles{}, saved: map[string]modelFiles{}, turn: map[string]uint64{}}
}

// TestBlameIsAReplayOfTheHistory compares blame with lines that carry their origin through
// edits, renames, rewinds, undos, redos and several agents.
func TestBlameIsAReplayOfTheHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		memory := memblob.New()
		blobs, rows := blob.Checked(memory), memkv.New(memory)
		opts := &checkpoint.Options{}
		if rapid.Bool().Draw(rt, "recall") {
			opts.IndexDir = testenv.TempDir(t)
		}
		service, convs := checkpoint.New(blobs, rows, opts), conversation.New(blobs, rows, nil)
		w, err := service.Open(t.Context(), testenv.TempDir(t))
		if err != nil {
			rt.Fatal(err)
		}
		defer w.Close()
		pick := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(rt, what) }
		reader := blame.New(blobs, service, convs)
		reader.ReadTogether(rapid.IntRange(1, 4).Draw(rt, "together"))
		reader.RememberFrom(rapid.IntRange(1, 4).Draw(rt, "remember"))
		newModel(rt, pick, w, reader).play(t, rapid.IntRange(3, 9).Draw(rt, "acts"))
	})
}

// TestBlameOnAnEmbeddedStore plays longer histories on the store that people have.
func TestBlameOnAnEmbeddedStore(t *testing.T) {
	for seed := range uint64(testenv.Sizes(1, 3, 30)) {
		db, err := stet.Open(t.Context(), t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := db.Checkpoints().Open(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(seed, 7))
		pick := func(n int, _ string) int { return rnd.IntN(n) }
		reader := blame.New(db.Blobs(), db.Checkpoints(), db.Conversations())
		reader.RememberFrom(2)
		newModel(t, pick, w, reader).play(t, testenv.Sizes(20, 40, 80))
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
