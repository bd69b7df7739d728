package intake_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
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
	More, Open                 bool
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
			if !l.More {
				b.Begin(foreign.Turn{ID: l.ID, Follows: l.Follows, Prompt: l.Prompt, Model: "toy-1", Cut: l.ID, Started: when,
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

func TestSessionBecomesConversation(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one", Reply: "a"}, toyLine{ID: "t2", Prompt: "two", Reply: "b"})
	if r := f.pass(); !r.Created || r.Turns != 2 || r.Conversation != "s1" || r.Bytes == 0 {
		t.Errorf("got %+v", r)
	}
	info, err := f.store.Get(context.Background(), "s1")
	if err != nil || info.Title != "one" || info.Agent != "toy" || info.Workspace != "/ws" || info.Turns != 2 {
		t.Errorf("got %+v, %v", info, err)
	}
	if got := f.texts(); got != "one:a two:b" {
		t.Errorf("got %s", got)
	}
	save, err := f.store.SaveAt(context.Background(), "s1", 2)
	if err != nil || save.MessageID != "t2" || save.Turn.Model != "toy-1" || save.Turn.Input != 10 || save.Turn.Cut != "t2" || !save.Turn.Done {
		t.Errorf("got %+v, %v", save, err)
	}
	f.sameSource()
}

func TestSecondPassAddsOnlyWhatIsNew(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		f.write(toyLine{ID: fmt.Sprint("t", i), Prompt: fmt.Sprint("p", i), Reply: "r"})
		if r := f.pass(); r.Turns != 1 || r.Created != (i == 0) {
			t.Fatalf("pass %d: %+v", i, r)
		}
		if r := f.pass(); r.Turns+r.Grown != 0 || r.Bytes != 0 {
			t.Fatalf("pass %d again: %+v", i, r)
		}
	}
	if n := f.saves(); n != 20 {
		t.Errorf("%d saves", n)
	}
	f.sameSource()
}

func TestOpenTurnGrows(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one", Reply: "a"}, toyLine{ID: "t2", Prompt: "two", Reply: "b", Open: true})
	f.pass()
	f.write(toyLine{More: true, Reply: "c", Open: true})
	if r := f.pass(); r.Grown != 1 || r.Turns != 0 {
		t.Errorf("got %+v", r)
	}
	f.write(toyLine{More: true, Reply: "d"}, toyLine{ID: "t3", Prompt: "three"})
	if r := f.pass(); r.Grown != 1 || r.Turns != 1 {
		t.Errorf("got %+v", r)
	}
	if got := f.texts(); got != "one:a two:b:c:d three" {
		t.Errorf("got %s", got)
	}
}

// A turn that was done and grows afterwards is read again from the beginning.
func TestDoneTurnGrows(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two", Reply: "b"})
	f.pass()
	f.write(toyLine{More: true, Reply: "late"})
	if r := f.pass(); r.Grown != 1 {
		t.Errorf("got %+v", r)
	}
	if got := f.texts(); got != "one two:b:late" {
		t.Errorf("got %s", got)
	}
}

func TestRewoundSessionKeepsBothBranches(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two"})
	f.pass()
	f.write(toyLine{ID: "t3", Follows: "t1", Prompt: "other"}, toyLine{ID: "t4", Prompt: "more"})
	f.pass()
	if got := f.texts(); got != "one other more" {
		t.Errorf("got %s", got)
	}
	if _, err := f.store.MessageHead(context.Background(), "s1", "t2"); err != nil {
		t.Errorf("turn 2 is gone: %v", err)
	}
	f.write(toyLine{ID: "t5", Follows: foreign.Beginning, Prompt: "new"})
	f.pass()
	if got := f.texts(); got != "new" {
		t.Errorf("got %s", got)
	}
}

func TestForkSharesItsOrigin(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two"})
	f.pass()
	f.id, f.path = "s2", filepath.Join(t.TempDir(), "fork.jsonl")
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t9", Prompt: "instead"})
	s := f.session()
	s.ForkedFrom, s.ForkedAfter = "s1", "t1"
	if r := f.passOf(s); r.Turns != 1 {
		t.Errorf("got %+v", r)
	}
	if got := f.texts(); got != "one instead" {
		t.Errorf("got %s", got)
	}
	if info, err := f.store.Get(context.Background(), "s2"); err != nil || info.ForkedFrom != "s1" || info.ForkedFromSave != 1 {
		t.Errorf("got %+v, %v", info, err)
	}
	f.write(toyLine{ID: "t10", Prompt: "on"})
	if r := f.passOf(s); r.Turns != 1 || f.texts() != "one instead on" {
		t.Errorf("got %+v, %s", r, f.texts())
	}
}

// A record that its agent rewrote, shorter or not, loses nothing that was copied.
func TestRewrittenRecord(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two"}, toyLine{ID: "t3", Prompt: "three"})
	f.pass()
	before := f.source()
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	f.write(toyLine{ID: "t3", Prompt: "three"}, toyLine{ID: "t4", Prompt: "four"})
	f.pass()
	if got := f.texts(); got != "one two three four" {
		t.Errorf("got %s", got)
	}
	f.sameSource()
	if before == f.source() {
		t.Error("the new record is not kept")
	}
}

func TestGarbageAndTornLines(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"})
	file, _ := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
	file.WriteString("garbage\n" + strings.Repeat("x", jsonl.MaxLine+1) + "\n")
	file.Close()
	f.write(toyLine{ID: "t2", Prompt: "two"})
	file, _ = os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
	file.WriteString(`{"ID":"t3","Pro`)
	file.Close()
	r := f.pass()
	if r.Turns != 2 || len(r.Unreadable) != 2 || f.texts() != "one two" {
		t.Errorf("got %+v, %s", r, f.texts())
	}
	f.sameSource()
}

func TestSessionsThatAreLeftAlone(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	f.write()
	if r := f.pass(); r.Skipped == "" || r.Conversation != "" {
		t.Errorf("an empty session: %+v", r)
	}
	f.write(toyLine{ID: "t1", Prompt: "one"})
	if _, err := f.store.Create(ctx, conversation.Info{ID: "s1"}); err != nil {
		t.Fatal(err)
	}
	if r := f.pass(); !strings.Contains(r.Skipped, "elsewhere") {
		t.Errorf("another conversation: %+v", r)
	}
	f.id = "s2"
	f.pass()
	c, err := f.store.Open(ctx, "s2")
	if err != nil {
		t.Fatal(err)
	}
	turn, _ := conversation.NewTurn(nil)
	if _, err := c.Save(ctx, nil); err != nil || c.AppendTurn(ctx, turn) != nil {
		t.Fatal(err)
	}
	if _, err := c.Save(ctx, nil); err != nil {
		t.Fatal(err)
	}
	f.write(toyLine{ID: "t2", Prompt: "two"})
	if r := f.pass(); !strings.Contains(r.Skipped, "continued here") {
		t.Errorf("continued: %+v", r)
	}
}

func TestSourceOfOther(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	if _, err := intake.SourceFiles(ctx, f.blobs, f.rows, "no"); !errors.Is(err, intake.ErrNoSource) {
		t.Errorf("got %v", err)
	}
	f.write(toyLine{ID: "t1", Prompt: "one"})
	f.pass()
	if names, err := intake.SourceFiles(ctx, f.blobs, f.rows, "s1"); err != nil || !slices.Equal(names, []string{"toy.jsonl"}) {
		t.Errorf("got %v, %v", names, err)
	}
	if s, err := intake.Session(ctx, f.store, "s1"); err != nil || s.Path != f.path || s.Agent != "toy" {
		t.Errorf("got %+v, %v", s, err)
	}
}

// meeting is an agent whose session is copied by another process while this one reads it.
type meeting struct {
	toy
	other func()
}

func (m meeting) Turns(ctx context.Context, s foreign.Session, from foreign.Mark) iter.Seq2[foreign.Turn, error] {
	m.other()
	return m.toy.Turns(ctx, s, from)
}

// Two hooks at once copy each turn once.
func TestTwoProcessesCopyOneSession(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"})
	f.pass()
	f.write(toyLine{ID: "t2", Prompt: "two"})
	met := false
	m := intake.New(f.blobs, f.rows, meeting{other: func() {
		if !met {
			met = true
			f.pass()
		}
	}})
	if _, err := m.Session(context.Background(), f.session()); err != nil {
		t.Fatal(err)
	}
	if got := f.texts(); got != "one two" {
		t.Errorf("got %s", got)
	}
}

// TestAConversationThatWasThereFirstLearnsWhereItsSessionIs: agents report a turn before
// its record exists, and move records later.
func TestAConversationThatWasThereFirstLearnsWhereItsSessionIs(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	early := foreign.Session{Agent: "toy", ID: f.id, Workspace: "/ws"}
	if _, err := f.store.Create(ctx, intake.Info(early, "hello")); err != nil {
		t.Fatal(err)
	}
	f.write(toyLine{ID: "t1", Prompt: "hello", Reply: "hi"})
	for _, name := range []string{"s.jsonl", "moved.jsonl"} {
		path := filepath.Join(filepath.Dir(f.path), name)
		if err := os.Rename(f.path, path); err != nil {
			t.Fatal(err)
		}
		f.path = path
		f.pass()
		if s, err := intake.Session(ctx, f.store, f.id); err != nil || s.Path != path {
			t.Errorf("the session is at %q (%v), want %q", s.Path, err, path)
		}
	}
}
