package cloudagent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/cloudagent"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	anyrunv1 "github.com/stet-dev/stet/gen/anyrun/v1"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/upkeep"
)

func TestGetBlobGivesOnlyWhatBelongsToTheAgent(t *testing.T) {
	ctx, b := t.Context(), memory()
	s := b.store()
	old, oldBlobs := stateOf(2)
	now, nowBlobs := stateOf(3)
	extra, secret := wireBlob("came along"), wireBlob("of somebody else")
	for _, agent := range []string{"a", "b"} {
		must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: agent}))
	}
	must[cloudagent.Saved](t)(s.SaveState(ctx, "a", old, append(oldBlobs, extra), nil))
	if err := s.StorePrefetchedBlobs(ctx, secret); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetBlob(ctx, "a", blob.ID(secret.Id)); !errors.Is(err, cloudagent.ErrNotFound) {
		t.Errorf("somebody else's blob: %v, want ErrNotFound", err)
	}
	must[cloudagent.Saved](t)(s.SaveState(ctx, "a", now, nowBlobs, nil))
	for _, other := range append(append(oldBlobs, extra), nowBlobs...) {
		if got, err := s.GetBlob(ctx, "a", blob.ID(other.Id)); err != nil || string(got) != string(other.Value) {
			t.Errorf("own blob: %q, %v", got, err)
		}
		if _, err := s.GetBlob(ctx, "b", blob.ID(other.Id)); !errors.Is(err, cloudagent.ErrNotFound) {
			t.Errorf("a's blob asked of b: %v, want ErrNotFound", err)
		}
	}
	latest, err := s.GetLatestState(ctx, "a")
	if err != nil || !proto.Equal(latest.LatestConversationState.ConversationState, now.ConversationState) || len(latest.PreFetchedBlobs) != len(nowBlobs) {
		t.Errorf("latest state is %v with %d blobs, %v", latest.GetLatestConversationState(), len(latest.GetPreFetchedBlobs()), err)
	}
}

// A collector that knows the roots keeps everything that a follower can ask
// for, and nothing else.
func TestCollectorKeepsStatesAndLog(t *testing.T) {
	ctx, mem := t.Context(), memblob.New()
	blobs, rows := blob.Checked(mem), memkv.New(mem)
	s := cloudagent.New(blobs, rows, nil)
	start := must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running})).Head
	image, waste := wireBlob("image in an update"), wireBlob("nobody needs this")
	if err := s.StorePrefetchedBlobs(ctx, image, waste); err != nil {
		t.Fatal(err)
	}
	must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, &agentv1.InteractionUpdate{
		Message: &agentv1.InteractionUpdate_UserMessageAppended{UserMessageAppended: &agentv1.UserMessageAppendedUpdate{
			UserMessage: &agentv1.UserMessage{TextBlobId: image.Id},
		}},
	}))
	kept := []*aiserverv1.PreFetchedBlob{image}
	for n := range 3 {
		state, given := stateOf(n)
		must[cloudagent.Saved](t)(s.SaveState(ctx, "a", state, given, nil))
		kept = append(kept, given...)
	}
	_, err := upkeep.New(upkeep.Stores{Blobs: blobs, Rows: rows, Inventory: mem}).Collect(ctx, &upkeep.CollectOptions{Grace: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range kept {
		if _, err := blobs.Get(ctx, blob.ID(b.Id)); err != nil {
			t.Errorf("%q is gone: %v", b.Value, err)
		}
	}
	if _, err := blobs.Get(ctx, blob.ID(waste.Id)); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("what nobody needs is there: %v", err)
	}
	take(t, s, "a", 4, &cloudagent.StreamOptions{After: start.String()}) // reads every state
}

// failing refuses some blobs and counts how many are written at once.
type failing struct {
	blob.Store
	mu       sync.Mutex
	now, top int
}

func (f *failing) Put(ctx context.Context, blobs ...blob.Blob) error {
	f.mu.Lock()
	f.now++
	f.top = max(f.top, f.now)
	f.mu.Unlock()
	time.Sleep(time.Millisecond)
	f.mu.Lock()
	f.now--
	f.mu.Unlock()
	for _, b := range blobs {
		if strings.HasPrefix(string(b.Data), "bad") {
			return fmt.Errorf("no room for %s", b.Data)
		}
	}
	return f.Store.Put(ctx, blobs...)
}

func TestQueuedWritesReportTheirErrors(t *testing.T) {
	ctx := t.Context()
	f := &failing{Store: memblob.New()}
	s := cloudagent.New(f, memkv.New(nil), nil)
	for i := range 300 {
		if err := s.EnqueueSetBlobs(ctx, "c1", wireBlob(fmt.Sprint("good ", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.EnqueueSetBlobs(ctx, "c1", wireBlob("bad 1"), wireBlob("bad 2")); err != nil {
		t.Fatal(err)
	}
	wrong := wireBlob("x")
	wrong.Value = []byte("y")
	if err := s.EnqueueSetBlobs(ctx, "c1", wrong); !errors.Is(err, blob.ErrMismatch) {
		t.Errorf("a wrong id: %v, want ErrMismatch", err)
	}
	err := s.WaitForPendingWrites(ctx, "c1")
	if err == nil || !strings.Contains(err.Error(), "bad 1") || !strings.Contains(err.Error(), "bad 2") {
		t.Errorf("writes end with %v, want both errors", err)
	}
	if err := s.WaitForPendingWrites(ctx, "c1"); err != nil {
		t.Errorf("the errors are told twice: %v", err)
	}
	for i := range 300 {
		if _, err := f.Get(ctx, blob.Sum([]byte(fmt.Sprint("good ", i)))); err != nil {
			t.Error(err)
		}
	}
	if f.top > 50 || f.top < 2 {
		t.Errorf("%d writes ran at once, want 2 to 50", f.top)
	}
}

// between is a context that lets something happen where a call first looks whether
// it is done.
type between struct {
	context.Context
	once sync.Once
	do   func()
}

func (b *between) Done() <-chan struct{} {
	b.once.Do(b.do)
	return b.Context.Done()
}

// Another caller waits, and finds nothing to wait for, between the moment in which a
// write is announced and the one in which it is queued.
func TestWaitingForWritesMissesNoneThatIsBeingQueued(t *testing.T) {
	f := &failing{Store: memblob.New()}
	s := cloudagent.New(f, memkv.New(nil), nil)
	ctx := &between{Context: t.Context(), do: func() {
		if err := s.WaitForPendingWrites(t.Context(), "c1"); err != nil {
			t.Error(err)
		}
	}}
	if err := s.EnqueueSetBlobs(ctx, "c1", wireBlob("bad 1")); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitForPendingWrites(t.Context(), "c1"); err == nil || !strings.Contains(err.Error(), "bad 1") {
		t.Errorf("waiting for a write that fails gave %v", err)
	}
}

type signer struct{ err error }

func (s signer) Presign(_ context.Context, agent, snapshot string, upload bool) (string, error) {
	return fmt.Sprintf("https://bucket.test/%s/%s?upload=%v", agent, snapshot, upload), s.err
}

func TestSnapshotsGetTheirAddressWhenAskedFor(t *testing.T) {
	ctx, b := t.Context(), memory()
	s := cloudagent.New(b.blobs, b.rows, &cloudagent.Options{Presigner: signer{}})
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a"}))
	if _, err := s.Snapshot(ctx, "a", false); !errors.Is(err, cloudagent.ErrNotFound) {
		t.Errorf("no snapshot: %v, want ErrNotFound", err)
	}
	const secret = "https://bucket.test/?signature=canary"
	if err := s.SetSnapshot(ctx, "a", &anyrunv1.ExternalSnapshot{SnapshotId: "s1", PresignedUrl: secret}); err != nil {
		t.Fatal(err)
	}
	for _, row := range allRows(t, b) {
		if strings.Contains(string(row.Value), "canary") {
			t.Errorf("row %q keeps the address", row.Key)
		}
	}
	got, err := s.Snapshot(ctx, "a", true)
	if err != nil || got.PresignedUrl != "https://bucket.test/a/s1?upload=true" || got.BlobStorageFormat != anyrunv1.BlobStorageFormat_BLOB_STORAGE_FORMAT_V1 {
		t.Errorf("snapshot is %v, %v", got, err)
	}
	legacy := cloudagent.New(b.blobs, b.rows, &cloudagent.Options{LegacySnapshots: true})
	if err := legacy.SetSnapshot(ctx, "a", &anyrunv1.ExternalSnapshot{SnapshotId: "s2"}); err != nil {
		t.Fatal(err)
	}
	if _, err := legacy.Snapshot(ctx, "a", false); err == nil {
		t.Error("an address came from nowhere")
	}
	if got, err := s.Snapshot(ctx, "a", false); err != nil || got.BlobStorageFormat != 0 {
		t.Errorf("snapshot is %v, %v", got, err)
	}
}

func TestListInPages(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("a:%02d", i)
		must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: id, Labels: map[string]string{"n": fmt.Sprint(i)}}))
		want = append(want, id)
	}
	var got []string
	for page := (cloudagent.Page{Limit: 10}); ; {
		listed, err := s.List(ctx, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range listed.Agents {
			got = append(got, a.ID)
		}
		if page.After = listed.Next; listed.Next == "" {
			break
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("agents are %v, want %v", got, want)
	}
}
