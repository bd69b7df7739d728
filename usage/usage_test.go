package usage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

// bench is a store in memory.
type bench struct {
	t    *testing.T
	mem  *memblob.Store
	rows kv.Store
	*Store
}

func newBench(t *testing.T) *bench {
	t.Helper()
	mem := memblob.New()
	blobs, rows := blob.Checked(mem), memkv.New(mem)
	return &bench{t, mem, rows, &Store{
		Blobs: blobs, Lister: mem, Conversations: conversation.New(blobs, rows, nil),
		Checkpoints: checkpoint.New(blobs, rows, nil), Agents: cloudagent.New(blobs, rows, nil),
	}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// talk saves a conversation, one turn after the other.
func (b *bench) talk(id string, texts ...string) {
	b.t.Helper()
	c, err := b.Conversations.Create(b.t.Context(), conversation.Info{ID: id, Title: "about " + id})
	must(b.t, err)
	for _, text := range texts {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text})
		must(b.t, err)
		must(b.t, c.AppendTurn(b.t.Context(), turn))
		_, err = c.Save(b.t.Context(), nil)
		must(b.t, err)
	}
}

// capture makes a checkpoint of a directory with one file.
func (b *bench) capture(conversation, content string) *checkpoint.Record {
	b.t.Helper()
	dir := b.t.TempDir()
	must(b.t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	must(b.t, os.WriteFile(filepath.Join(dir, "sub", "f"), []byte(content), 0o644))
	w, err := b.Checkpoints.Open(b.t.Context(), dir)
	must(b.t, err)
	defer w.Close()
	res, err := w.Checkpoint(b.t.Context(), checkpoint.Request{Conversation: conversation, Label: "x"})
	must(b.t, err)
	return res.Record
}

func (b *bench) measure(opts *Options) *Report {
	b.t.Helper()
	r, err := b.Measure(b.t.Context(), opts)
	must(b.t, err)
	return r
}

func kindsOf(r *Report) string {
	var text []string
	for _, k := range r.Kinds {
		text = append(text, fmt.Sprintf("%s %d", k.Name, k.Blobs))
	}
	slices.Sort(text)
	return strings.Join(text, ", ")
}

// addsUp compares a report with the store.
func addsUp(t *testing.T, r *Report) {
	t.Helper()
	sum := r.Referenced()
	sum.Blobs += r.Unreferenced.Blobs
	sum.Bytes += r.Unreferenced.Bytes
	if sum != r.All || r.All.Bytes == 0 {
		t.Errorf("kinds and unreferenced take %v, the store %v", sum, r.All)
	}
}

func TestEveryBlobCountsOnce(t *testing.T) {
	b := newBench(t)
	b.talk("one", "hello", "again")
	b.talk("two", "hello") // its turn is the same blob
	b.capture("one", "a file")
	must(t, b.Blobs.Put(t.Context(), blob.New([]byte("nobody's"))))
	_, err := b.Agents.Create(t.Context(), cloudagent.Spec{ID: "a1", Name: "agent"})
	must(t, err)

	plain, history := b.measure(nil), b.measure(&Options{History: true})
	for _, r := range []*Report{plain, history} {
		addsUp(t, r)
		if r.Unreferenced != (Count{1, 8}) || r.Partial || len(r.Damaged) > 0 {
			t.Errorf("unreferenced %v, partial %v, damaged %v", r.Unreferenced, r.Partial, r.Damaged)
		}
	}
	if kindsOf(plain) != kindsOf(history) {
		t.Errorf("with history %s, without %s", kindsOf(history), kindsOf(plain))
	}
	if !strings.Contains(kindsOf(plain), "directories 2, files 1, messages 2, states 2") {
		t.Errorf("kinds %s", kindsOf(plain))
	}
	if got := history.Kinds; !slices.IsSortedFunc(got, func(a, b Kind) int { return int(b.Bytes - a.Bytes) }) {
		t.Errorf("the largest kind is not the first: %v", got)
	}
}

func TestHistoryAddsUp(t *testing.T) {
	b := newBench(t)
	b.talk("one", "hello", "again")
	b.talk("two", "hello")
	b.capture("one", "a file")
	b.capture("", "another file")
	r := b.measure(&Options{History: true})
	var brought int64
	for _, c := range r.Conversations {
		brought += c.Bytes
	}
	if brought != r.Referenced().Bytes || len(r.Conversations) != 3 || r.Conversations[0].Title != "about one" {
		t.Errorf("conversations brought %d of %d: %v", brought, r.Referenced().Bytes, r.Conversations)
	}
	if r.Logical <= r.Content || r.Content != r.All.Bytes { // memory keeps blobs as they are
		t.Errorf("logical %d, content %d of %d", r.Logical, r.Content, r.All.Bytes)
	}
	last := r.Points[len(r.Points)-1]
	for i, k := range r.Kinds {
		if last.Bytes[i] != k.Bytes {
			t.Errorf("last point %v, kinds %v", last, r.Kinds)
		}
	}
	if size, ok := r.Stored(blob.Sum([]byte("a file"))); !ok || size != 6 {
		t.Errorf("stored size of a file %d, %v", size, ok)
	}
}

// Only some saves of a long history are points of time, and agents have none. They
// refer to their content all the same.
func TestWhatHasNoPointIsReferenced(t *testing.T) {
	b := newBench(t)
	texts := make([]string, maxSaves*2)
	for i := range texts {
		texts[i] = fmt.Sprint("message ", i)
	}
	b.talk("long", texts...)
	_, err := b.Agents.Create(t.Context(), cloudagent.Spec{ID: "a1"})
	must(t, err)
	before := b.mem.Len()
	_, err = b.Agents.SaveState(t.Context(), "a1", &aiserverv1.CloudAgentState{}, nil, nil)
	must(t, err)
	r := b.measure(&Options{History: true, Points: 7})
	addsUp(t, r)
	if b.mem.Len() == before {
		t.Error("the agent has no blob")
	}
	if r.Unreferenced.Blobs != 0 || len(r.Points) != 7 {
		t.Errorf("unreferenced %v, %d points", r.Unreferenced, len(r.Points))
	}
}

func TestStoreThatListsNothing(t *testing.T) {
	b := newBench(t)
	b.talk("one", "hello")
	b.capture("one", "a file")
	listed := b.measure(nil)
	b.Lister = nil
	for _, opts := range []*Options{nil, {History: true}} {
		r := b.measure(opts)
		if r.Listed || r.All != (Count{}) || r.Unreferenced != (Count{}) {
			t.Errorf("report %+v", r)
		}
		if r.Referenced() != listed.All { // memory keeps blobs as they are
			t.Errorf("contents %v, stored %v", r.Referenced(), listed.All)
		}
	}
}

func TestLimitOfReading(t *testing.T) {
	b := newBench(t)
	b.talk("one", "hello", "again", "and again")
	for _, opts := range []*Options{{MaxRead: 1}, {MaxRead: 1, History: true}} {
		r := b.measure(opts)
		if !r.Partial || r.Unreferenced != (Count{}) || r.All.Blobs == 0 {
			t.Errorf("report %+v", r)
		}
	}
}

// setRow writes a row past the services.
func (b *bench) setRow(key, value string) {
	b.t.Helper()
	must(b.t, b.rows.Commit(b.t.Context(), &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte(value)}}}))
}

func TestDamageIsReportedAndTheRestCounted(t *testing.T) {
	b := newBench(t)
	b.talk("good", "hello")
	b.talk("bad", "one", "two", "three")
	sound := b.measure(nil)
	b.setRow(keyspace.Save("bad", 2), "\xff")
	b.setRow(keyspace.Checkpoint("01"), "\xff")
	for _, opts := range []*Options{nil, {History: true}} {
		r := b.measure(opts)
		if addsUp(t, r); len(r.Damaged) != 2 || r.Referenced().Blobs < sound.Referenced().Blobs-1 {
			t.Errorf("damaged %v, referenced %v of %v", r.Damaged, r.Referenced(), sound.Referenced())
		}
	}
	all, damaged, err := b.ByConversation(t.Context())
	must(t, err)
	if len(all) != 2 || len(damaged) != 1 || damaged[0].ID != "bad" || all[0].Bytes == 0 || all[1].Bytes == 0 {
		t.Errorf("conversations %v, damaged %v", all, damaged)
	}
}

// A tree that lost a directory is damage; so is one that holds something else.
func TestDamagedTrees(t *testing.T) {
	b := newBench(t)
	rec := b.capture("", "a file")
	b.capture("", "another file")
	damage := &lossy{Store: b.Blobs, lost: rec.Tree}
	b.Blobs = damage
	for _, opts := range []*Options{nil, {History: true}} {
		r := b.measure(opts)
		if len(r.Damaged) != 1 || !conversation.Damaged(r.Damaged[0]) {
			t.Errorf("damaged %v", r.Damaged)
		}
	}
}

// A state that is lost is damage, of the store and of its conversation.
func TestLostStates(t *testing.T) {
	b := newBench(t)
	b.talk("one", "hello")
	b.talk("two", "hello again")
	head, err := b.Conversations.Head(t.Context(), "two")
	must(t, err)
	b.Blobs = &lossy{Store: b.Blobs, lost: head}
	for _, opts := range []*Options{nil, {History: true}} {
		r := b.measure(opts)
		if len(r.Damaged) != 1 || !conversation.Damaged(r.Damaged[0]) || !strings.Contains(r.Damaged[0].Error(), head.String()) {
			t.Errorf("damaged %v", r.Damaged)
		}
	}
	all, damaged, err := b.ByConversation(t.Context())
	must(t, err)
	if len(all) != 2 || len(damaged) != 1 || damaged[0].ID != "two" {
		t.Errorf("conversations %v, damaged %v", all, damaged)
	}
}

type lossy struct {
	blob.Store
	lost blob.ID
}

func (l *lossy) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == l.lost {
		return nil, fmt.Errorf("blob %s: %w", id, blob.ErrNotFound)
	}
	return l.Store.Get(ctx, id)
}

func TestByConversationCountsSharedContentWithEach(t *testing.T) {
	b := newBench(t)
	b.talk("one", "hello")
	b.talk("two", "hello", "again")
	b.capture("one", strings.Repeat("a large file ", 1000))
	all, damaged, err := b.ByConversation(t.Context())
	must(t, err)
	if len(damaged) > 0 || len(all) != 2 || all[0].ID != "one" || all[0].Title != "about one" {
		t.Fatalf("conversations %v, damaged %v", all, damaged)
	}
	if all[0].Blobs != 6 || all[1].Blobs != 6 { // state, turn, message, 2 directories, file; 2 of each of the first three
		t.Errorf("blobs %v", all)
	}
	if shared := b.measure(nil).Referenced(); all[0].Bytes+all[1].Bytes <= shared.Bytes {
		t.Errorf("%v together, %v in the store", all, shared)
	}
}

func TestArchivedConversations(t *testing.T) {
	b := newBench(t)
	b.talk("here", "hello")
	b.talk("away", "hello again")
	b.Names = b.Conversations // as users see them
	b.Archived = func(context.Context) iter.Seq2[Archived, error] {
		return func(yield func(Archived, error) bool) {
			yield(Archived{ID: "away", Objects: 2, Count: Count{9, 1 << 20}}, nil)
		}
	}
	r := b.measure(nil)
	if r.Archived != 1 || r.Packs != 2 || r.PackBytes != 1<<20 {
		t.Errorf("report %+v", r)
	}
	all, _, err := b.ByConversation(t.Context())
	must(t, err)
	if len(all) != 2 || !all[0].Archived || all[0].Count != (Count{9, 1 << 20}) || all[0].Title != "about away" {
		t.Errorf("conversations %v", all)
	}
}

func TestCancelledMeasure(t *testing.T) {
	b := newBench(t)
	b.talk("one", "hello")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, opts := range []*Options{nil, {History: true}} {
		if _, err := b.Measure(ctx, opts); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if _, _, err := b.ByConversation(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := Disk(ctx, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestListOutOfOrder(t *testing.T) {
	b := newBench(t)
	b.Lister = listFunc(func(fn func(blob.Info) error) error {
		return errors.Join(fn(blob.Info{ID: blob.ID{2}}), fn(blob.Info{ID: blob.ID{1}}))
	})
	if _, err := b.Measure(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "after") {
		t.Errorf("got %v", err)
	}
}

type listFunc func(fn func(blob.Info) error) error

func (l listFunc) List(_ context.Context, _ blob.ID, fn func(blob.Info) error) error { return l(fn) }

func TestThinning(t *testing.T) {
	h := &history{}
	for of := range int32(3) {
		for i := range 10 {
			h.moments = append(h.moments, moment{unixMS: int64(i), of: of})
		}
	}
	h.thinAll(4)
	if len(h.moments) != 12 || h.moments[3].unixMS != 9 || h.moments[4].of != 1 || h.moments[4].unixMS != 0 {
		t.Errorf("moments %v", h.moments)
	}
	if got := evenly(10, 1); !slices.Equal(got, []int{9}) {
		t.Errorf("one of ten: %v", got)
	}
}

// vanishing walks over files of which some are gone when they are looked at.
func vanishing(fn fs.WalkDirFunc, errs ...error) error {
	for _, err := range errs {
		if err := fn("f", entry{err: err}, nil); err != nil {
			return err
		}
	}
	return nil
}

type entry struct {
	fs.DirEntry
	err error
}

func (e entry) IsDir() bool { return false }
func (e entry) Info() (fs.FileInfo, error) {
	if e.err != nil {
		return nil, e.err
	}
	return os.Stat("usage_test.go")
}

func TestFilesThatVanishTakeNothing(t *testing.T) {
	info, err := os.Stat("usage_test.go")
	must(t, err)
	gone := &fs.PathError{Op: "lstat", Path: "f", Err: fs.ErrNotExist}
	sum := func(walk func(fs.WalkDirFunc) error) (int64, error) { return sumFiles(t.Context(), walk) }
	got, err := sum(func(fn fs.WalkDirFunc) error { return vanishing(fn, gone, nil, gone) })
	if err != nil || got != info.Size() {
		t.Errorf("a file vanished: %d, %v", got, err)
	}
	// A directory vanishes between its listing and that of its entries.
	got, err = sum(func(fn fs.WalkDirFunc) error {
		if err := fn("dir", nil, gone); err != nil {
			return err
		}
		return vanishing(fn, nil)
	})
	if err != nil || got != info.Size() {
		t.Errorf("a directory vanished: %d, %v", got, err)
	}
	denied := &fs.PathError{Op: "lstat", Path: "f", Err: fs.ErrPermission}
	if _, err := sum(func(fn fs.WalkDirFunc) error { return vanishing(fn, denied) }); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file that cannot be looked at: %v", err)
	}
	if _, err := Disk(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}
