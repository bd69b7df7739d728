package intake_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/intake"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/turns"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

// toy is an agent whose record has one JSON line for each turn, or for more of it.
type toy struct{ foreign.Adapter }

type toyLine struct {
	ID, Follows, Prompt, Reply string
	More, Open, Automatic      bool
	Later                      bool // it happens after everything else in a test
}

func (toy) Turns(ctx context.Context, s foreign.Session, from foreign.Mark) iter.Seq2[foreign.Turn, error] {
	return func(yield func(foreign.Turn, error) bool) {
		b := turns.New(from, yield)
		at, _, err := turns.OffsetOf(from)
		if err != nil {
			b.Fail(err)
			return
		}
		end := at
		for line, err := range jsonl.Lines(ctx, s.Path, at) {
			var l toyLine
			if err == nil && json.Unmarshal(line.Data, &l) != nil {
				err = fmt.Errorf("%w: line at %d", foreign.ErrUnreadable, line.Offset)
			}
			if err != nil {
				b.Fail(err)
				continue
			}
			end = line.End
			when := time.UnixMilli(1_000_000 + line.Offset)
			if l.Later {
				when = time.Now().Add(time.Hour)
			}
			if !l.More {
				b.Begin(foreign.Turn{ID: l.ID, Follows: l.Follows, Prompt: l.Prompt, Automatic: l.Automatic, Model: "toy-1", Cut: l.ID, Started: when,
					Usage: foreign.Usage{Input: 10, Output: 2}}, line.Offset)
			}
			b.Text(l.Reply, when)
			b.Seen(when)
			if b.Turn() != nil {
				b.Turn().Done = !l.Open
			}
			if b.Stopped() {
				return
			}
		}
		b.Close(end)
	}
}

func (toy) Files(ctx context.Context, s foreign.Session) iter.Seq2[foreign.File, error] {
	return func(yield func(foreign.File, error) bool) { yield(foreign.File{Name: "toy.jsonl", Path: s.Path}, nil) }
}

type fixture struct {
	t     *testing.T
	blobs blob.Store
	rows  kv.Store
	store *conversation.Store
	path  string
	id    string
}

func newFixture(t *testing.T) *fixture {
	blobs := memblob.New()
	f := &fixture{t: t, blobs: blobs, rows: memkv.New(blobs), path: filepath.Join(t.TempDir(), "s.jsonl"), id: "s1"}
	f.store = conversation.New(f.blobs, f.rows, nil)
	return f
}

func (f *fixture) write(lines ...toyLine) {
	f.t.Helper()
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	for _, l := range lines {
		data, _ := json.Marshal(l)
		fmt.Fprintf(file, "%s\n", data)
	}
}

func (f *fixture) session() foreign.Session {
	return foreign.Session{Agent: "toy", ID: f.id, Path: f.path, Workspace: "/ws"}
}

func (f *fixture) pass() intake.Result { return f.passOf(f.session()) }

func (f *fixture) passOf(s foreign.Session) intake.Result {
	f.t.Helper()
	r, err := intake.New(f.blobs, f.rows, toy{}).Session(context.Background(), s)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// texts returns prompts and replies of the current state.
func (f *fixture) texts() string {
	f.t.Helper()
	state, err := f.store.Hydrate(context.Background(), f.id, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	var out []string
	for _, turn := range state.Turns {
		user, err := turn.UserMessage.Decode()
		if err != nil {
			f.t.Fatal(err)
		}
		text := user.GetText()
		for _, s := range turn.Steps {
			step, err := s.Decode()
			if err != nil {
				f.t.Fatal(err)
			}
			text += ":" + step.GetAssistantMessage().GetText()
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func (f *fixture) saves() (n int) {
	for _, err := range f.store.History(context.Background(), f.id, nil) {
		if err != nil {
			f.t.Fatal(err)
		}
		n++
	}
	return n
}

func (f *fixture) source() string {
	f.t.Helper()
	var out bytes.Buffer
	if err := intake.WriteSource(context.Background(), f.blobs, f.rows, f.id, "toy.jsonl", &out); err != nil {
		f.t.Fatal(err)
	}
	return out.String()
}

func (f *fixture) sameSource() {
	f.t.Helper()
	want, _ := os.ReadFile(f.path)
	if got := f.source(); got != string(want) {
		f.t.Errorf("the raw record has %d bytes, the file %d", len(got), len(want))
	}
}
