package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/transfer"
	"github.com/stet-dev/stet/upkeep"
)

func open(t *testing.T) *stet.DB {
	t.Helper()
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func side(db *stet.DB) transfer.Side { return transfer.Side{Blobs: db.Blobs(), Rows: db.Rows()} }

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// say adds a turn for each text to a conversation and saves after each.
func say(t *testing.T, db *stet.DB, id string, texts ...string) {
	t.Helper()
	ctx := t.Context()
	c, err := db.Conversations().Open(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) {
		c, err = db.Conversations().Create(ctx, conversation.Info{ID: id, Title: "about " + id})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		turn := must[conversation.Turn](t)(conversation.NewTurn(&agentv1.UserMessage{Text: text, MessageId: "m-" + text}))
		if err := c.AppendTurn(ctx, turn); err != nil {
			t.Fatal(err)
		}
		must[conversation.Save](t)(c.Save(ctx, &conversation.SaveOptions{MessageID: "m-" + text}))
	}
}

// said returns the texts of the turns of a conversation's head.
func said(t *testing.T, db *stet.DB, id string) []string {
	t.Helper()
	state := must[*conversation.State](t)(db.Conversations().Hydrate(t.Context(), id, nil))
	var out []string
	for _, turn := range state.Turns {
		out = append(out, must[*agentv1.UserMessage](t)(turn.UserMessage.Decode()).GetText())
	}
	return out
}

// move moves everything that is named.
func move(t *testing.T, from, to *stet.DB, opts *transfer.Options, ids ...string) *transfer.Report {
	t.Helper()
	return must[*transfer.Report](t)(transfer.Run(t.Context(), side(from), side(to), ids, opts))
}

func statuses(r *transfer.Report) map[string]transfer.Status {
	out := make(map[string]transfer.Status)
	for _, c := range r.Conversations {
		out[c.ID] = c.Status
	}
	return out
}

// healthy checks the whole store.
func healthy(t *testing.T, db *stet.DB) {
	t.Helper()
	report := must[*upkeep.Report](t)(db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true}))
	if !report.OK() {
		t.Errorf("damage: %v", report.Damage)
	}
}

func TestOnlyWhatIsMissingIsSent(t *testing.T) {
	a, b := open(t), open(t)
	say(t, a, "one", "hello", "again")
	say(t, a, "two", "other")

	dry := move(t, a, b, &transfer.Options{DryRun: true})
	if dry.Blobs == 0 || len(must[conversation.Page](t)(b.Conversations().List(t.Context(), nil)).Conversations) != 0 {
		t.Errorf("a dry run counts %d blobs and moves nothing", dry.Blobs)
	}
	first := move(t, a, b, nil)
	if diff := cmp.Diff(map[string]transfer.Status{"one": transfer.Created, "two": transfer.Created}, statuses(first)); diff != "" {
		t.Error(diff)
	}
	if first.Blobs != dry.Blobs {
		t.Errorf("%d blobs were sent, the dry run said %d", first.Blobs, dry.Blobs)
	}
	if diff := cmp.Diff([]string{"hello", "again"}, said(t, b, "one")); diff != "" {
		t.Error(diff)
	}
	if again := move(t, a, b, nil); again.Blobs != 0 || statuses(again)["one"] != transfer.Current {
		t.Errorf("the second time: %+v", again)
	}
	say(t, a, "one", "more")
	second := move(t, a, b, nil, "one")
	if second.Conversations[0].Status != transfer.Updated || second.Conversations[0].Saves != 1 || second.Blobs > 3 {
		t.Errorf("after one more turn: %+v", second)
	}
	say(t, b, "one", "answer")
	if r := move(t, a, b, nil, "one"); r.Conversations[0].Status != transfer.Ahead || r.Blobs != 0 {
		t.Errorf("to a store that is ahead: %+v", r)
	}
	if r := move(t, b, a, nil, "one"); r.Conversations[0].Status != transfer.Updated {
		t.Errorf("back: %+v", r)
	}
	if diff := cmp.Diff([]string{"hello", "again", "more", "answer"}, said(t, a, "one")); diff != "" {
		t.Error(diff)
	}
	healthy(t, a)
	healthy(t, b)
	_, err := transfer.Run(t.Context(), side(a), side(b), []string{"none"}, nil)
	if !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("a missing conversation: %v", err)
	}
}

func TestDivergedHistoriesAreKept(t *testing.T) {
	ctx := t.Context()
	a, b := open(t), open(t)
	say(t, a, "talk", "one", "two")
	move(t, a, b, nil)
	writer := must[*conversation.Conversation](t)(b.Conversations().Open(ctx, "talk"))
	say(t, a, "talk", "mine", "mine too")
	say(t, b, "talk", "theirs")

	report := move(t, a, b, nil)
	if report.Conversations[0].Status != transfer.Diverged || len(report.Diverged()) != 1 {
		t.Fatalf("got %+v", report)
	}
	if diff := cmp.Diff([]string{"one", "two", "theirs"}, said(t, b, "talk")); diff != "" {
		t.Errorf("it was left alone:\n%s", diff)
	}
	forced := move(t, a, b, &transfer.Options{Force: true})
	if forced.Conversations[0].Status != transfer.Forced || forced.Conversations[0].Saves != 2 {
		t.Errorf("got %+v", forced)
	}
	if diff := cmp.Diff([]string{"one", "two", "mine", "mine too"}, said(t, b, "talk")); diff != "" {
		t.Error(diff)
	}
	branches := must[[]conversation.Branch](t)(b.Conversations().Branches(ctx, "talk"))
	tips := make(map[string]uint64)
	for _, branch := range branches {
		tips[branch.Label] = branch.Tip.Seq
	}
	if diff := cmp.Diff(map[string]uint64{"": 3, "after-2": 5}, tips); diff != "" {
		t.Errorf("branches:\n%s", diff)
	}
	// From here on both go the same way, although their numbers differ.
	say(t, a, "talk", "last")
	if r := move(t, a, b, nil); r.Conversations[0].Status != transfer.Updated || r.Conversations[0].Saves != 1 {
		t.Errorf("afterwards: %+v", r)
	}
	if r := move(t, b, a, nil); r.Conversations[0].Status != transfer.Current {
		t.Errorf("and back: %+v", r)
	}
	turn := must[conversation.Turn](t)(conversation.NewTurn(&agentv1.UserMessage{Text: "late"}))
	if err := writer.AppendTurn(ctx, turn); err != nil {
		t.Error(err)
	}
	if _, err := writer.Save(ctx, nil); !errors.Is(err, conversation.ErrStale) {
		t.Errorf("a writer from before: %v, want stale", err)
	}
	healthy(t, b)
}

func TestCheckpointsComeAlong(t *testing.T) {
	ctx := t.Context()
	a, b := open(t), open(t)
	say(t, a, "talk", "one")
	dir := filepath.Join(t.TempDir(), "work")
	capture := func(db *stet.DB, label, content string) *checkpoint.Record {
		t.Helper()
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "a.txt"), []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
		w := must[*checkpoint.Workspace](t)(db.Checkpoints().Open(ctx, dir))
		defer w.Close()
		return must[*checkpoint.Result](t)(w.Checkpoint(ctx, checkpoint.Request{Conversation: "talk", Label: label})).Record
	}
	first, second := capture(a, "first", "one\n"), capture(a, "second", "two\n")
	report := move(t, a, b, nil)
	if report.Conversations[0].Checkpoints != 2 {
		t.Fatalf("got %+v", report)
	}
	labels := func(db *stet.DB) (out []string) {
		for rec, err := range db.Checkpoints().ListConversation(ctx, "talk") {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, rec.Label)
		}
		return out
	}
	if diff := cmp.Diff([]string{"second", "first"}, labels(b)); diff != "" {
		t.Error(diff)
	}
	w := must[*checkpoint.Workspace](t)(b.Checkpoints().Open(ctx, dir))
	defer w.Close()
	if rec := must[*checkpoint.Record](t)(w.Resolve(ctx, "c2", "")); rec.ID != second.ID {
		t.Errorf("c2 is %s there, want %s", rec.ID, second.ID)
	}
	if rec := must[*checkpoint.Record](t)(b.Checkpoints().Get(ctx, first.ID)); !rec.Received {
		t.Error("the target does not know that the checkpoint came from elsewhere")
	}
	if rec := must[*checkpoint.Record](t)(a.Checkpoints().Get(ctx, first.ID)); rec.Received {
		t.Error("the source took its own checkpoint for one from elsewhere")
	}
	if rec := must[*checkpoint.Record](t)(b.Checkpoints().Get(ctx, first.ID)); rec.Tree != first.Tree {
		t.Errorf("tree %s, want %s", rec.Tree, first.Tree)
	}
	// The other store goes on with the same directory: numbers may collide, nothing
	// is lost.
	capture(b, "theirs", "three\n")
	capture(a, "third", "three!\n")
	if r := move(t, a, b, nil); r.Conversations[0].Checkpoints != 1 {
		t.Errorf("got %+v", r)
	}
	if got := labels(b); len(got) != 4 {
		t.Errorf("checkpoints %q, want four", got)
	}
	healthy(t, b)
}

func TestEncryptedStaysEncrypted(t *testing.T) {
	a, b := open(t), open(t)
	say(t, a, "talk", "secret")
	from := side(a)
	from.Encrypted = true
	if _, err := transfer.Run(t.Context(), from, side(b), nil, nil); !errors.Is(err, transfer.ErrPlain) {
		t.Errorf("got %v, want %v", err, transfer.ErrPlain)
	}
	if _, err := b.Rows().Get(t.Context(), keyspace.Conversation("talk")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("something was moved: %v", err)
	}
	must[*transfer.Report](t)(transfer.Run(t.Context(), from, side(b), nil, &transfer.Options{AllowPlain: true}))
}

func TestDamagedSourceIsReported(t *testing.T) {
	a, b := open(t), open(t)
	say(t, a, "talk", "one")
	from := side(a)
	gone := must[conversation.Info](t)(a.Conversations().Get(t.Context(), "talk")).Root
	from.Blobs = lacking{from.Blobs, gone}
	if _, err := transfer.Run(t.Context(), from, side(b), nil, nil); !errors.Is(err, transfer.ErrIncomplete) {
		t.Errorf("got %v", err)
	}
}

type lacking struct {
	blob.Store
	id blob.ID
}

func (l lacking) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == l.id {
		return nil, blob.NotFound(id)
	}
	return l.Store.Get(ctx, id)
}

var errCut = fmt.Errorf("connection cut: %w", io.ErrUnexpectedEOF)

// line counts the calls of both stores of a side and cuts one of them: the call
// happens or does not, its answer never arrives.
type line struct {
	calls, cut int
	happens    bool
}

func (l *line) call(do func() error) error {
	if l.calls++; l.calls != l.cut {
		return do()
	}
	if l.happens {
		_ = do() // nobody learns how it went
	}
	return errCut
}

type cutBlobs struct {
	blob.Store
	l *line
}

func (c cutBlobs) Get(ctx context.Context, id blob.ID) (data []byte, err error) {
	err = c.l.call(func() error { data, err = c.Store.Get(ctx, id); return err })
	return data, err
}

func (c cutBlobs) Has(ctx context.Context, ids ...blob.ID) (has []bool, err error) {
	err = c.l.call(func() error { has, err = c.Store.Has(ctx, ids...); return err })
	return has, err
}

func (c cutBlobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	return c.l.call(func() error { return c.Store.Put(ctx, blobs...) })
}

type cutRows struct {
	kv.Store
	l *line
}

func (c cutRows) Get(ctx context.Context, key string) (row kv.Row, err error) {
	err = c.l.call(func() error { row, err = c.Store.Get(ctx, key); return err })
	return row, err
}

func (c cutRows) Commit(ctx context.Context, b *kv.Batch) error {
	return c.l.call(func() error { return c.Store.Commit(ctx, b) })
}

// A transfer is cut at every call in turn, before and after the call took effect,
// and repeated: what is visible is whole at any time, and the end is the same.
func TestACutTransferIsResumed(t *testing.T) {
	ctx := t.Context()
	a := open(t)
	say(t, a, "talk", "one", "two", "three")
	dir := filepath.Join(t.TempDir(), "work")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "a.txt"), bytes.Repeat([]byte("line\n"), 100), 0o644)); err != nil {
		t.Fatal(err)
	}
	w := must[*checkpoint.Workspace](t)(a.Checkpoints().Open(ctx, dir))
	defer w.Close()
	must[*checkpoint.Result](t)(w.Checkpoint(ctx, checkpoint.Request{Conversation: "talk", Label: "first"}))

	for _, happens := range []bool{false, true} {
		b := open(t)
		cuts := 0
		for k := 1; ; k++ {
			l := &line{cut: k, happens: happens}
			to := transfer.Side{Blobs: cutBlobs{b.Blobs(), l}, Rows: cutRows{b.Rows(), l}}
			_, err := transfer.Run(ctx, side(a), to, nil, nil)
			if err == nil && l.calls < k {
				break // it was over before the cut
			}
			if err != nil && !errors.Is(err, errCut) {
				t.Fatalf("cut %d: %v", k, err)
			}
			cuts++
			if k > 1000 {
				t.Fatal("it never ends")
			}
			healthy(t, b)
			if info, err := b.Conversations().Get(ctx, "talk"); err == nil && info.Save > 0 {
				if got, want := said(t, b, "talk"), []string{"one", "two", "three"}[:info.Turns]; !cmp.Equal(got, want) {
					t.Fatalf("cut %d: the head has %q, want %q", k, got, want)
				}
			}
		}
		// Each run got further, since the one before had moved something.
		if diff := cmp.Diff([]string{"one", "two", "three"}, said(t, b, "talk")); diff != "" || cuts < 5 {
			t.Errorf("after %d cuts:\n%s", cuts, diff)
		}
		want := must[conversation.Info](t)(a.Conversations().Get(ctx, "talk"))
		if got := must[conversation.Info](t)(b.Conversations().Get(ctx, "talk")); got.Root != want.Root || got.Save != want.Save {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if r := move(t, a, b, nil); r.Blobs != 0 || r.Conversations[0].Checkpoints != 0 {
			t.Errorf("there was something left: %+v", r)
		}
	}
}

// keep lets a conversation forget all but its newest saves.
func keep(t *testing.T, db *stet.DB, newest int) {
	t.Helper()
	all := must[[]conversation.Retained](t)(db.Conversations().Retainable(t.Context(), nil))
	plan := conversation.PlanRetention(all, conversation.Policy{MaxSaves: newest}, time.Now())
	must[int](t)(db.Conversations().ApplyRetention(t.Context(), plan))
}

func numbers(t *testing.T, db *stet.DB, id string) (out []uint64) {
	t.Helper()
	for save, err := range db.Conversations().History(t.Context(), id, nil) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, save.Seq)
	}
	return out
}

// What a policy of the target has forgotten does not come back, and the head never
// goes back to it, wherever the transfer is cut.
func TestForgottenSavesStayForgotten(t *testing.T) {
	ctx := t.Context()
	a, b := open(t), open(t)
	say(t, a, "talk", "one", "two", "three")
	back := must[*conversation.Conversation](t)(a.Conversations().Open(ctx, "talk"))
	must[conversation.Save](t)(back.Rewind(ctx, 2, nil)) // save 3 is on a branch of its own
	say(t, a, "talk", "four")
	move(t, a, b, nil)
	keep(t, b, 1)
	say(t, a, "talk", "five")

	var seen [][]string
	report := move(t, a, b, &transfer.Options{Progress: func(transfer.Report) { seen = append(seen, said(t, b, "talk")) }})
	if got := report.Conversations[0]; got.Status != transfer.Updated || got.Saves != 1 {
		t.Errorf("got %+v, want one save", got)
	}
	if diff := cmp.Diff([]uint64{5, 6}, numbers(t, b, "talk")); diff != "" {
		t.Errorf("saves:\n%s", diff)
	}
	for _, head := range seen {
		if len(head) < 3 || head[2] != "four" {
			t.Errorf("the head went back to %q", head)
		}
	}
	if diff := cmp.Diff([]string{"one", "two", "four", "five"}, said(t, b, "talk")); diff != "" {
		t.Error(diff)
	}
	healthy(t, b)
}

// busy lets something happen right before the first commit.
type busy struct {
	kv.Store
	once sync.Once
	do   func()
}

func (r *busy) Commit(ctx context.Context, b *kv.Batch) error {
	r.once.Do(r.do)
	return r.Store.Commit(ctx, b)
}

// The source has forgotten the save whose number a writer at the target takes while
// the transfer is under way.
func TestASaveThatComesBetweenIsSeen(t *testing.T) {
	ctx := t.Context()
	a, b := open(t), open(t)
	say(t, a, "talk", "one")
	move(t, a, b, nil)
	say(t, a, "talk", "two", "three")
	must[conversation.Pin](t)(a.Conversations().Pin(ctx, "first", "talk", 1))
	keep(t, a, 1)
	if diff := cmp.Diff([]uint64{1, 3}, numbers(t, a, "talk")); diff != "" {
		t.Fatal(diff)
	}
	writer := must[*conversation.Conversation](t)(b.Conversations().Open(ctx, "talk"))
	if err := writer.AppendTurn(ctx, must[conversation.Turn](t)(conversation.NewTurn(&agentv1.UserMessage{Text: "theirs"}))); err != nil {
		t.Fatal(err)
	}
	to := side(b)
	to.Rows = &busy{Store: b.Rows(), do: func() { must[conversation.Save](t)(writer.Save(ctx, nil)) }}
	if _, err := transfer.Run(ctx, side(a), to, nil, nil); !errors.Is(err, transfer.ErrChanged) {
		t.Errorf("got %v, want %v", err, transfer.ErrChanged)
	}
	if diff := cmp.Diff([]string{"one", "theirs"}, said(t, b, "talk")); diff != "" {
		t.Error(diff)
	}
	if page := must[conversation.Page](t)(b.Conversations().List(ctx, nil)); len(page.Conversations) != 1 {
		t.Errorf("it is listed %d times", len(page.Conversations))
	}
	if r := move(t, a, b, nil); len(r.Diverged()) != 1 {
		t.Errorf("again: %+v", r)
	}
	healthy(t, b)
}

// Who moves everything does not mind that something was deleted meanwhile.
func TestAConversationThatGoesMeanwhileIsLeftOut(t *testing.T) {
	ctx := t.Context()
	a, b := open(t), open(t)
	say(t, a, "one", "hello")
	say(t, a, "two", "hello")
	to := side(b)
	to.Rows = &busy{Store: b.Rows(), do: func() {
		if err := a.Conversations().Delete(ctx, "two", nil); err != nil {
			t.Error(err)
		}
	}}
	report, err := transfer.Run(ctx, side(a), to, nil, nil)
	if err != nil {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(map[string]transfer.Status{"one": transfer.Created}, statuses(report)); diff != "" {
		t.Error(diff)
	}
}

// A collector at the target takes what was sent before it is named.
func TestACollectionBetweenSendingAndNaming(t *testing.T) {
	ctx := t.Context()
	a, b := open(t), open(t)
	say(t, a, "talk", "one", "two")
	collections := 0
	to := side(b)
	to.Rows = &each{Store: b.Rows(), do: func() {
		collections++
		if _, err := b.Collect(ctx, &upkeep.CollectOptions{Grace: -1}); err != nil {
			t.Error(err)
		}
	}}
	if _, err := transfer.Run(ctx, side(a), to, nil, nil); err != nil {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"one", "two"}, said(t, b, "talk")); diff != "" || collections == 0 {
		t.Errorf("after %d collections:\n%s", collections, diff)
	}
	healthy(t, b)
}

// each lets something happen before every second commit, so that what is tried again
// works.
type each struct {
	kv.Store
	n  int
	do func()
}

func (r *each) Commit(ctx context.Context, b *kv.Batch) error {
	if r.n++; r.n%2 == 0 {
		r.do()
	}
	return r.Store.Commit(ctx, b)
}
