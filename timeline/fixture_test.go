package timeline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/timeline"
)

// fixture is a workspace over a store in memory.
type fixture struct {
	*timeline.Reader
	t       *testing.T
	memory  *memblob.Store
	rows    kv.Store
	service *checkpoint.Service
	store   *conversation.Store
	w       *checkpoint.Workspace
	writes  int
	lost    map[blob.ID]bool // by put
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	memory := memblob.New()
	blobs, rows := blob.Checked(memory), memkv.New(memory)
	f := &fixture{t: t, memory: memory, rows: rows, service: checkpoint.New(blobs, rows, nil), store: conversation.New(blobs, rows, nil)}
	f.Reader = timeline.New(f.service, f.store)
	f.w = f.open()
	return f
}

// open opens a new directory.
func (f *fixture) open() *checkpoint.Workspace {
	f.t.Helper()
	w, err := f.service.Open(f.t.Context(), f.t.TempDir())
	f.must(err)
	f.t.Cleanup(func() { f.must(w.Close()) })
	return w
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// take changes a file and makes a checkpoint after a turn, and returns its id. A
// conversation of "" makes one of no conversation.
func (f *fixture) take(conversation string, turn uint64) string {
	f.t.Helper()
	return f.takeIn(f.w, conversation, turn)
}

func (f *fixture) takeIn(w *checkpoint.Workspace, conversation string, turn uint64) string {
	f.t.Helper()
	f.writes++
	name := "file-" + conversation
	f.must(os.WriteFile(filepath.Join(w.Path(), name), fmt.Appendln(nil, f.writes), 0o600))
	req := checkpoint.Request{Conversation: conversation, Turn: turn, Touched: []string{name}}
	if conversation != "" {
		req.Side = checkpoint.After
	}
	res, err := w.Checkpoint(f.t.Context(), req)
	f.must(err)
	return res.Record.ID
}

// rewind goes to a checkpoint, for one conversation or for all.
func (f *fixture) rewind(to, conversation string) *checkpoint.Applied {
	f.t.Helper()
	plan, err := f.w.Plan(f.t.Context(), checkpoint.RewindRequest{To: to, Conversation: conversation, Choice: checkpoint.Theirs, Scope: checkpoint.FilesOnly})
	f.must(err)
	done, err := f.w.Rewind(f.t.Context(), plan.Request(), plan.Token)
	f.must(err)
	return done
}

// forget removes checkpoints as retention does, which leaves young ones alone.
func (f *fixture) forget(ids ...string) {
	f.t.Helper()
	for _, id := range ids {
		rec, err := f.service.Get(f.t.Context(), id)
		f.must(err)
		b := &kv.Batch{Delete: []string{keyspace.Checkpoint(id), keyspace.WorkspaceCheckpoint(rec.Workspace, id)}}
		if rec.Conversation != "" {
			b.Delete = append(b.Delete, keyspace.ConversationCheckpoint(rec.Conversation, id))
		}
		f.must(f.rows.Commit(f.t.Context(), b))
	}
}

func (f *fixture) read(scope timeline.Scope) *timeline.History {
	f.t.Helper()
	h, err := f.Read(f.t.Context(), scope)
	f.must(err)
	return h
}

// text writes a history in one line, oldest first: a name, "x" and the branch if it was
// left behind, "*" if it is current, and in parentheses how many are gone before it.
// The checkpoints that rewinds make are left out.
func text(h *timeline.History) string {
	var out []string
	for _, e := range h.Entries {
		if e.Record.Kind == checkpoint.Rewound || e.Record.Kind == checkpoint.Safety {
			continue
		}
		name := e.Record.Name()
		if e.Left {
			name += fmt.Sprintf("x%d", e.Branch)
		}
		if e.Current {
			name += "*"
		}
		if e.Forgotten > 0 {
			name = fmt.Sprintf("(%d)%s", e.Forgotten, name)
		}
		out = append([]string{name}, out...)
	}
	return strings.Join(out, " ")
}

// same compares a history of a conversation in the workspace, or of all of it.
func (f *fixture) same(conversation, want string) {
	f.t.Helper()
	got := text(f.read(timeline.Scope{Workspace: f.w.ID(), Conversation: conversation}))
	if got != want {
		f.t.Errorf("history of %q: got %s, want %s", conversation, got, want)
	}
	if conversation == "" {
		return
	}
	if other := text(f.read(timeline.Scope{Conversation: conversation})); other != got {
		f.t.Errorf("history of %q in all workspaces: got %s, want %s", conversation, other, got)
	}
}
