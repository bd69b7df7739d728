package cloudagent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/cloudagent"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	anyrunv1 "github.com/stet-dev/stet/gen/anyrun/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

const origin = "http://origin.example"

// followed follows an agent of another store in this process.
func followed(from *cloudagent.Store, agent string) func(context.Context, string, blob.Store) iter.Seq2[cloudagent.Event, error] {
	return func(ctx context.Context, after string, cache blob.Store) iter.Seq2[cloudagent.Event, error] {
		return cloudagent.Follow(ctx, cloudagent.FollowOptions{
			After: after, Cache: cache, Fetch: lenientFetcher(from, agent),
			Dial: func(ctx context.Context, after string) (cloudagent.Receiver, error) {
				return pull(ctx, from, agent, cloudagent.StreamOptions{After: after, MaxBlobsAfterPrefetch: 2}, nil), nil
			},
		})
	}
}

// lenientFetcher leaves out what cannot be read, as the client does.
func lenientFetcher(s *cloudagent.Store, agent string) func(context.Context, []blob.ID) ([]blob.Blob, error) {
	return func(ctx context.Context, ids []blob.ID) ([]blob.Blob, error) {
		var out []blob.Blob
		for _, id := range ids {
			data, err := s.GetBlob(ctx, agent, id)
			switch {
			case err == nil:
				out = append(out, blob.Blob{ID: id, Data: data})
			case !errors.Is(err, blob.ErrCorrupt):
				return nil, err
			}
		}
		return out, nil
	}
}

// copyFrom copies an agent until it has ended or something fails.
func copyFrom(ctx context.Context, to, from *cloudagent.Store, agent string) (events []cloudagent.Event, err error) {
	for e, err := range to.Copy(ctx, cloudagent.Spec{ID: agent, Name: "the fixer"}, cloudagent.CopyOptions{Address: origin, Follow: followed(from, agent)}) {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

// worked lets an agent work for a while, after an optional break.
func worked(t *testing.T, s *cloudagent.Store, agent string, end bool) {
	t.Helper()
	ctx := t.Context()
	if _, err := s.Get(ctx, agent); errors.Is(err, cloudagent.ErrNotFound) {
		must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: agent}))
	}
	must[cloudagent.Offset](t)(s.SetStatus(ctx, agent, running, nil))
	for i := range 3 {
		if err := appendTexts(ctx, s, agent, fmt.Sprint(i, "a"), fmt.Sprint(i, "b")); err != nil {
			t.Fatal(err)
		}
		state, blobs := stateOf(i + 1)
		must[cloudagent.Saved](t)(s.SaveState(ctx, agent, state, blobs, nil))
	}
	must[cloudagent.Offset](t)(s.SetStatus(ctx, agent, idle, nil))
	if end {
		if err := s.Archive(ctx, agent); err != nil {
			t.Fatal(err)
		}
	}
}

// logOf returns what the events of an agent's log say.
func logOf(t *testing.T, b backend, agent string) (log []string) {
	t.Helper()
	for row, err := range b.rows.Scan(t.Context(), keyspace.AgentEvents(agent, 0), kv.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		rec := new(stetv1.AgentEventRecord)
		if err := proto.Unmarshal(row.Value[8:], rec); err != nil {
			t.Fatal(err)
		}
		log = append(log, fmt.Sprintf("%q %x %s", rec.GetUpdate(), rec.GetState(), rec.GetStatus()))
	}
	return log
}

// sameCopy checks that a copy has what its origin has.
func sameCopy(t *testing.T, local, remote backend, agent string) {
	t.Helper()
	if diff := cmp.Diff(logOf(t, remote, agent), logOf(t, local, agent)); diff != "" {
		t.Errorf("the log of the copy differs:\n%s", diff)
	}
	want := must[cloudagent.Agent](t)(remote.store().Get(t.Context(), agent))
	got := must[cloudagent.Agent](t)(local.store().Get(t.Context(), agent))
	if got.Status != want.Status || got.State != want.State || got.StateAt.Seq != want.StateAt.Seq || !cmp.Equal(got.Properties, want.Properties) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.Origin != (cloudagent.Origin{Address: origin, Offset: want.Head.String()}) {
		t.Errorf("it was copied to %+v, want %s", got.Origin, want.Head)
	}
	// Every blob of the state is here, and belongs to the copy.
	latest := must[*aiserverv1.GetLatestAgentConversationStateResponse](t)(local.store().GetLatestState(t.Context(), agent))
	there := must[*aiserverv1.GetLatestAgentConversationStateResponse](t)(remote.store().GetLatestState(t.Context(), agent))
	if !proto.Equal(latest, there) {
		t.Errorf("the copy has the state %v, want %v", latest, there)
	}
}

// A copy has the log, the state, the status and the metadata of its agent, goes on where
// it was, and is read like any other agent.
func TestACopyOfAnAgent(t *testing.T) {
	onBoth(t, func(t *testing.T, local backend) {
		ctx := t.Context()
		remote := memory()
		there, here := remote.store(), local.store()
		must[cloudagent.Agent](t)(there.Create(ctx, cloudagent.Spec{ID: "a"}))
		// Stop after the first event, then go on with another store value, as another
		// process would.
		for _, err := range here.Copy(ctx, cloudagent.Spec{ID: "a"}, cloudagent.CopyOptions{Address: origin, Follow: followed(there, "a")}) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		worked(t, there, "a", true)
		events := must[[]cloudagent.Event](t)(copyFrom(ctx, local.store(), there, "a"))
		if len(events) != len(logOf(t, remote, "a")) {
			t.Errorf("%d events were yielded, want %d", len(events), len(logOf(t, remote, "a")))
		}
		sameCopy(t, local, remote, "a")
		if meta := must[cloudagent.Metadata](t)(here.Metadata(ctx, "a")); meta.Status != cloudagent.StatusArchived || meta.State.IsZero() {
			t.Errorf("metadata %+v", meta)
		}
		if again := must[[]cloudagent.Event](t)(copyFrom(ctx, local.store(), there, "a")); len(again) != 0 {
			t.Errorf("%d events came again", len(again))
		}
		var seen []string
		for e, err := range followed(here, "a")(ctx, "", nil) {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, e.Offset)
		}
		if len(seen) == 0 {
			t.Error("nobody can follow the copy")
		}
	})
}

func TestACopyTakesNoOtherChanges(t *testing.T) {
	ctx := t.Context()
	local, remote := memory(), memory()
	here, there := local.store(), remote.store()
	worked(t, there, "a", true)
	must[[]cloudagent.Event](t)(copyFrom(ctx, here, there, "a"))
	state, blobs := stateOf(1)
	_, saveErr := here.SaveState(ctx, "a", state, blobs, nil)
	_, statusErr := here.SetStatus(ctx, "a", running, nil)
	for what, err := range map[string]error{
		"append": appendTexts(ctx, here, "a", "mine"), "save": saveErr, "status": statusErr, "archive": here.Archive(ctx, "a"),
		"snapshot": here.SetSnapshot(ctx, "a", &anyrunv1.ExternalSnapshot{SnapshotId: "s"}),
	} {
		if !errors.Is(err, cloudagent.ErrCopy) {
			t.Errorf("%s: got %v, want %v", what, err, cloudagent.ErrCopy)
		}
	}
	must[cloudagent.Agent](t)(here.Create(ctx, cloudagent.Spec{ID: "own"}))
	if _, err := copyFrom(ctx, here, there, "own"); !errors.Is(err, cloudagent.ErrExists) {
		t.Errorf("over an agent of this store: %v", err)
	}
	for _, err := range here.Copy(ctx, cloudagent.Spec{ID: "a"}, cloudagent.CopyOptions{Address: "http://elsewhere.example", Follow: followed(there, "a")}) {
		if !errors.Is(err, cloudagent.ErrExists) {
			t.Errorf("from another address: %v", err)
		}
	}
	if err := here.Delete(ctx, "a"); err != nil {
		t.Error(err)
	}
}

var errCut = fmt.Errorf("cut: %w", io.ErrUnexpectedEOF)

// cutting counts the calls of a store and fails all from one on: that call happens or
// does not. It is what a process leaves that is killed there.
type cutting struct {
	mu         sync.Mutex // guards calls
	calls, cut int
	happens    bool
}

func (l *cutting) call(do func() error) error {
	l.mu.Lock()
	l.calls++
	n := l.calls
	l.mu.Unlock()
	switch {
	case n < l.cut:
		return do()
	case n == l.cut && l.happens:
		_ = do() // the process is gone
	}
	return errCut
}

type cutBlobs struct {
	blob.Store
	l *cutting
}

func (c cutBlobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	return c.l.call(func() error { return c.Store.Put(ctx, blobs...) })
}

func (c cutBlobs) Flush(ctx context.Context) error {
	return c.l.call(func() error { return c.Store.Flush(ctx) })
}

type cutRows struct {
	kv.Store
	l *cutting
}

func (c cutRows) Commit(ctx context.Context, b *kv.Batch) error {
	return c.l.call(func() error { return c.Store.Commit(ctx, b) })
}

// A process that copies is killed at every write in turn, before and after it took effect.
// The next one goes on: no event is lost or copied twice.
func TestAKilledCopyGoesOn(t *testing.T) {
	ctx := t.Context()
	remote := memory()
	there := remote.store()
	must[cloudagent.Agent](t)(there.Create(ctx, cloudagent.Spec{ID: "a"}))
	empty := must[cloudagent.Agent](t)(there.Get(ctx, "a"))
	worked(t, there, "a", true)
	for _, happens := range []bool{false, true} {
		for k, whole := 1, false; !whole; k++ {
			local := memory()
			// Begin before the first event, so that all of them must come.
			begun := false
			first := func(ctx context.Context, after string, cache blob.Store) iter.Seq2[cloudagent.Event, error] {
				return func(yield func(cloudagent.Event, error) bool) {
					if begun = true; after == "" && !yield(cloudagent.Event{Initial: true, Status: empty.Status, Offset: empty.Head.String()}, nil) {
						return
					}
					if after == "" {
						after = empty.Head.String()
					}
					followed(there, "a")(ctx, after, cache)(yield)
				}
			}
			run := func(b backend) (err error) {
				for _, err := range b.store().Copy(ctx, cloudagent.Spec{ID: "a"}, cloudagent.CopyOptions{Address: origin, Follow: first}) {
					if err != nil {
						return err
					}
				}
				return nil
			}
			l := &cutting{cut: k, happens: happens}
			err := run(backend{cutBlobs{local.blobs, l}, cutRows{local.rows, l}})
			if whole = err == nil; err != nil && !errors.Is(err, errCut) {
				t.Fatalf("cut %d: %v", k, err)
			}
			if err := run(local); err != nil || !begun {
				t.Fatalf("after cut %d: %v", k, err)
			}
			sameCopy(t, local, remote, "a")
			if t.Failed() {
				t.Fatalf("after cut %d, happens %t", k, happens)
			}
		}
	}
}

// gone says once that a collector has removed a blob that the commit names.
type gone struct {
	kv.Store
	once sync.Once
}

func (g *gone) Commit(ctx context.Context, b *kv.Batch) error {
	var err error
	if len(b.Refs) > 0 {
		g.once.Do(func() { err = &kv.MissingBlobsError{IDs: b.Refs[:1]} })
	}
	if err != nil {
		return err
	}
	return g.Store.Commit(ctx, b)
}

func TestACopyOutlivesACollection(t *testing.T) {
	local, remote := memory(), memory()
	worked(t, remote.store(), "a", true)
	interrupted := backend{local.blobs, &gone{Store: local.rows}}
	must[[]cloudagent.Event](t)(copyFrom(t.Context(), interrupted.store(), remote.store(), "a"))
	if got := must[cloudagent.Agent](t)(local.store().Get(t.Context(), "a")); got.Status != cloudagent.StatusArchived {
		t.Errorf("got %+v", got)
	}
}

// Two processes copy one agent: the slower one ends, and the log stays whole.
func TestTwoCopiersOfOneAgent(t *testing.T) {
	ctx := t.Context()
	local, remote := memory(), memory()
	there := remote.store()
	worked(t, there, "a", true)
	between := func(ctx context.Context, after string, cache blob.Store) iter.Seq2[cloudagent.Event, error] {
		must[[]cloudagent.Event](t)(copyFrom(ctx, local.store(), there, "a"))
		return followed(there, "a")(ctx, after, cache)
	}
	var failed error
	for _, err := range local.store().Copy(ctx, cloudagent.Spec{ID: "a"}, cloudagent.CopyOptions{Address: origin, Follow: between}) {
		failed = err
	}
	if !errors.Is(failed, cloudagent.ErrConflict) {
		t.Errorf("got %v, want %v", failed, cloudagent.ErrConflict)
	}
	if again := must[[]cloudagent.Event](t)(copyFrom(ctx, local.store(), there, "a")); len(again) != 0 {
		t.Errorf("%d events came again", len(again))
	}
}

// The origin was replaced by another agent of the same id: the copy keeps what it has and
// goes on with the new one.
func TestACopyOfAReplacedAgent(t *testing.T) {
	ctx := t.Context()
	local, remote := memory(), memory()
	worked(t, remote.store(), "a", true)
	must[[]cloudagent.Event](t)(copyFrom(ctx, local.store(), remote.store(), "a"))
	before := logOf(t, local, "a")
	another := memory()
	worked(t, another.store(), "a", true)
	events := must[[]cloudagent.Event](t)(copyFrom(ctx, local.store(), another.store(), "a"))
	if len(events) == 0 || !events[0].Initial {
		t.Fatalf("got %+v", events)
	}
	after := logOf(t, local, "a")
	if len(after) <= len(before) || !cmp.Equal(after[:len(before)], before) {
		t.Errorf("the log was\n%q and is\n%q", before, after)
	}
	want := must[cloudagent.Agent](t)(another.store().Get(ctx, "a"))
	if got := must[cloudagent.Agent](t)(local.store().Get(ctx, "a")); got.Origin.Offset != want.Head.String() || got.Status != want.Status {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// damaged fails reads of one blob.
type damaged struct {
	blob.Store
	id blob.ID
}

func (d damaged) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == d.id {
		return nil, fmt.Errorf("%s: %w", id, blob.ErrCorrupt)
	}
	return d.Store.Get(ctx, id)
}

func TestACopyWithoutADamagedBlob(t *testing.T) {
	ctx := t.Context()
	local, remote := memory(), memory()
	worked(t, remote.store(), "a", true)
	lost := blob.Sum([]byte("Fixer"))
	broken := backend{damaged{remote.blobs, lost}, remote.rows}
	events := must[[]cloudagent.Event](t)(copyFrom(ctx, local.store(), broken.store(), "a"))
	if len(events) == 0 || len(events[0].Missing) != 1 || events[0].Missing[0] != lost {
		t.Fatalf("got %+v", events)
	}
	got := must[cloudagent.Agent](t)(local.store().Get(ctx, "a"))
	if want := must[cloudagent.Agent](t)(remote.store().Get(ctx, "a")); got.State != want.State || got.Origin.Offset != want.Head.String() || got.Properties.AgentName != "" {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
