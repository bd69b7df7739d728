package mirror_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/mirror"
	"github.com/stet-dev/stet/sqlite"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func number(i int) blob.Blob { return blob.New(fmt.Appendf(nil, "blob number %d", i)) }

// machine is a store that outlives its processes.
type machine struct {
	t      *testing.T
	engine *sqlite.DB
	remote *blobtest.Faulty
	place  mirror.Remote
}

func newMachine(t *testing.T, name string) *machine {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), t.TempDir(), nil)
	must(t, err)
	t.Cleanup(func() { must(t, engine.Close()) })
	remote := blobtest.NewFaulty(memblob.New())
	return &machine{t, engine, remote, mirror.Remote{Name: name, Blobs: remote}}
}

// process opens the mirror as a process of its own does.
func (m *machine) process() *mirror.Store {
	m.t.Helper()
	s := mirror.New(blob.Checked(m.engine.Blobs()), m.engine.Blobs(), m.place, nil)
	s.Attach(m.engine.Rows())
	m.t.Cleanup(func() { must(m.t, s.Close()) })
	return s
}

func (m *machine) wantRemote(want bool, blobs ...blob.Blob) {
	m.t.Helper()
	for _, b := range blobs {
		has, err := m.remote.Has(context.Background(), b.ID)
		if err != nil || has[0] != want {
			m.t.Errorf("the remote has %q: %v, %v, want %v", b.Data[:min(20, len(b.Data))], has, err, want)
		}
	}
}

func wantBacklog(t *testing.T, s *mirror.Store, want int64) {
	t.Helper()
	if left, err := s.Backlog(t.Context(), 1<<40); err != nil || left.Blobs != want {
		t.Errorf("backlog: %+v, %v, want %d blobs", left, err, want)
	}
}

func TestContract(t *testing.T) {
	open := func(t *testing.T) blob.Store {
		m := newMachine(t, "contract")
		return m.process()
	}
	blobtest.Run(t, open)
}

// TestBacklogOutlivesItsProcess stores while the remote is away, in several processes,
// and sends in another.
func TestBacklogOutlivesItsProcess(t *testing.T) {
	m := newMachine(t, "away")
	m.remote.FailWhen(func(blobtest.Call) bool { return true }, nil)
	var all []blob.Blob
	for i := range 3 {
		s := m.process()
		one := []blob.Blob{number(10 * i), number(10*i + 1)}
		must(t, s.Put(t.Context(), one...))
		must(t, s.Flush(t.Context()))
		all = append(all, one...)
		if _, err := s.Send(t.Context(), nil); !errors.Is(err, blobtest.ErrInjected) {
			t.Errorf("send to a remote that is away: %v", err)
		}
		if !errors.Is(s.Err(), blobtest.ErrInjected) {
			t.Errorf("the failure is not remembered: %v", s.Err())
		}
		must(t, s.Close())
	}
	m.remote.Heal()
	s := m.process()
	wantBacklog(t, s, 6)
	sent, err := s.Send(t.Context(), nil)
	if err != nil || sent.Blobs != 6 || sent.Looked != 6 {
		t.Errorf("send: %+v, %v, want 6 blobs", sent, err)
	}
	m.wantRemote(true, all...)
	wantBacklog(t, s, 0)
	before := m.remote.Calls(blobtest.OpHas, blobtest.OpPut)
	sent, err = m.process().Send(t.Context(), nil)
	if err != nil || sent != (mirror.Sent{}) || m.remote.Calls(blobtest.OpHas, blobtest.OpPut) != before {
		t.Errorf("a send without a backlog: %+v, %v, and %d calls", sent, err, m.remote.Calls(blobtest.OpHas, blobtest.OpPut)-before)
	}
}

// TestSendGoesOnWhereItFailed cuts a long backlog in the middle.
func TestSendGoesOnWhereItFailed(t *testing.T) {
	m := newMachine(t, "cut")
	const n = 1500
	var all []blob.Blob
	for i := range n {
		all = append(all, number(i))
	}
	must(t, m.engine.Blobs().Put(t.Context(), all...))
	must(t, m.engine.Blobs().Flush(t.Context()))
	m.remote.On(func(c blobtest.Call) *blobtest.Fault {
		if c.Op == blobtest.OpPut && c.NthOp == 12 { // in the second page
			return &blobtest.Fault{Err: blobtest.ErrInjected}
		}
		return nil
	})
	s := m.process()
	if _, err := s.Send(t.Context(), nil); !errors.Is(err, blobtest.ErrInjected) {
		t.Fatalf("send: %v", err)
	}
	left, err := s.Backlog(t.Context(), 1<<40)
	if err != nil || left.Blobs == 0 || left.Blobs >= n {
		t.Errorf("backlog after a cut: %+v, %v, want some of %d", left, err, n)
	}
	m.remote.Heal()
	_, err = m.process().Send(t.Context(), nil)
	must(t, err)
	m.wantRemote(true, all...)
}

// TestLostBlobComesBack removes blobs behind the mirror's back, as a damaged disk or a
// new machine does.
func TestLostBlobComesBack(t *testing.T) {
	m := newMachine(t, "lost")
	large := blob.New(bytes.Repeat([]byte("large"), 1<<19))
	s := m.process()
	must(t, s.Put(t.Context(), number(1), large))
	_, err := s.Send(t.Context(), nil)
	must(t, err)

	other := newMachine(t, "lost")
	other.place.Blobs = m.remote
	fresh := other.process()
	for _, b := range []blob.Blob{number(1), large} {
		if got, err := fresh.Get(t.Context(), b.ID); err != nil || !bytes.Equal(got, b.Data) {
			t.Errorf("get: %d bytes, %v, want %d", len(got), err, len(b.Data))
		}
		if has, err := other.engine.Blobs().Has(t.Context(), b.ID); err != nil || !has[0] {
			t.Errorf("the fetched blob is not kept: %v, %v", has, err)
		}
	}
	if _, err := fresh.Get(t.Context(), number(2).ID); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("get what nobody has: %v", err)
	}
}

// TestCommitFetchesWhatItNames names a blob that only the remote has.
func TestCommitFetchesWhatItNames(t *testing.T) {
	m := newMachine(t, "names")
	must(t, m.remote.Put(t.Context(), number(1)))
	s := m.process()
	rows := s.Rows(m.engine.Rows())
	must(t, rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "a"}}, Refs: []blob.ID{number(1).ID}}))
	var missing *kv.MissingBlobsError
	err := rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "b"}}, Refs: []blob.ID{number(2).ID}})
	if !errors.As(err, &missing) || len(missing.IDs) != 1 {
		t.Errorf("commit that names what nobody has: %v", err)
	}
}

func TestLocalOnlyIsNotSentByAnyProcess(t *testing.T) {
	m := newMachine(t, "local")
	private, public := number(1), number(2)
	private.LocalOnly = true
	s := m.process()
	must(t, s.Put(t.Context(), private, public))
	must(t, s.Flush(t.Context()))
	must(t, s.Close())
	again := m.process()
	wantBacklog(t, again, 1)
	_, err := again.Send(t.Context(), &mirror.SendOptions{All: true})
	must(t, err)
	m.wantRemote(false, private)
	m.wantRemote(true, public)

	// Without the flag it may go, by any process, though it arrived before the mark.
	m.remote.FailWhen(func(c blobtest.Call) bool { return c.Op == blobtest.OpPut }, nil)
	private.LocalOnly = false
	must(t, again.Put(t.Context(), private))
	if _, err := again.Send(t.Context(), nil); err == nil {
		t.Error("send to a broken remote: no error")
	}
	must(t, again.Close())
	m.remote.Heal()
	last := m.process()
	wantBacklog(t, last, 1)
	_, err = last.Send(t.Context(), nil)
	must(t, err)
	m.wantRemote(true, private)
	wantBacklog(t, last, 0)
}

func TestAnotherRemoteGetsEverything(t *testing.T) {
	m := newMachine(t, "first")
	s := m.process()
	must(t, s.Put(t.Context(), number(1)))
	_, err := s.Send(t.Context(), nil)
	must(t, err)
	m.remote = blobtest.NewFaulty(memblob.New())
	m.place = mirror.Remote{Name: "second", Blobs: m.remote}
	_, err = m.process().Send(t.Context(), nil)
	must(t, err)
	m.wantRemote(true, number(1))

	// One that was emptied is asked again with All.
	m.remote = blobtest.NewFaulty(memblob.New())
	m.place.Blobs = m.remote
	_, err = m.process().Send(t.Context(), nil)
	must(t, err)
	m.wantRemote(false, number(1))
	_, err = m.process().Send(t.Context(), &mirror.SendOptions{All: true})
	must(t, err)
	m.wantRemote(true, number(1))
}

func TestRemoteThatIsNotReadyGetsNothing(t *testing.T) {
	m := newMachine(t, "refused")
	refused := errors.New("not here")
	m.place.Ready = func(context.Context) error { return refused }
	s := m.process()
	must(t, s.Put(t.Context(), number(1)))
	if _, err := s.Send(t.Context(), nil); !errors.Is(err, refused) {
		t.Errorf("send: %v, want the refusal", err)
	}
	if got := m.remote.Calls(blobtest.OpPut, blobtest.OpPutFrom); got != 0 {
		t.Errorf("%d writes to a remote that is not ready", got)
	}
	wantBacklog(t, s, 1)
}

// TestDamagedBlobDoesNotHoldUpTheOthers has one blob that cannot be read here.
func TestDamagedBlobDoesNotHoldUpTheOthers(t *testing.T) {
	m := newMachine(t, "damaged")
	local := blobtest.NewFaulty(blob.Checked(m.engine.Blobs()))
	s := mirror.New(local, m.engine.Blobs(), m.place, nil)
	s.Attach(m.engine.Rows())
	defer s.Close()
	must(t, m.engine.Blobs().Put(t.Context(), number(1), number(2)))
	local.FailWhen(func(c blobtest.Call) bool {
		return c.Op == blobtest.OpGet && len(c.IDs) == 1 && c.IDs[0] == number(1).ID
	}, blob.ErrCorrupt)
	sent, err := s.Send(t.Context(), nil)
	if err != nil || sent.Damaged != 1 || sent.Blobs != 1 {
		t.Errorf("send: %+v, %v, want one sent and one damaged", sent, err)
	}
	m.wantRemote(true, number(2))
	m.wantRemote(false, number(1))
}

// TestKeep holds blobs of another store, and reports those that are not there.
func TestKeep(t *testing.T) {
	blobs := memblob.New()
	rows := memkv.New(blobs)
	must(t, blobs.Put(t.Context(), number(1), number(2)))
	ids := []blob.ID{number(2).ID, number(1).ID, number(3).ID, number(1).ID}
	for range 2 { // the second changes nothing
		missing, err := mirror.Keep(t.Context(), rows, "laptop", ids)
		if err != nil || len(missing) != 1 || missing[0] != number(3).ID {
			t.Fatalf("keep: missing %v, %v, want the third", missing, err)
		}
		count := 0
		for root, err := range mirror.Roots(rows)(t.Context()) {
			must(t, err)
			if root.ID != number(1).ID && root.ID != number(2).ID {
				t.Errorf("root %s", root.ID)
			}
			count++
		}
		if count != 2 {
			t.Errorf("%d roots, want 2", count)
		}
	}
	for _, origin := range []string{"", string(make([]byte, 300))} {
		if _, err := mirror.Keep(t.Context(), rows, origin, ids); !errors.Is(err, mirror.ErrInvalid) {
			t.Errorf("origin of %d bytes: %v", len(origin), err)
		}
	}
	if _, err := mirror.Keep(t.Context(), rows, "x", make([]blob.ID, mirror.MaxKept+1)); !errors.Is(err, mirror.ErrInvalid) {
		t.Errorf("too many ids: %v", err)
	}
}

// TestSendTo uses a remote that keeps, as a server does: the collector of the remote
// must find what was sent.
func TestSendToARemoteThatKeeps(t *testing.T) {
	m := newMachine(t, "keeps")
	inner := memblob.New()
	rows := memkv.New(inner)
	m.place.Blobs = inner
	m.place.Keep = func(ctx context.Context, origin string, ids []blob.ID) ([]blob.ID, error) {
		return mirror.Keep(ctx, rows, origin, ids)
	}
	s := m.process()
	must(t, s.Put(t.Context(), number(1), number(2)))
	_, err := s.Send(t.Context(), nil)
	must(t, err)
	kept := map[blob.ID]bool{}
	for root, err := range mirror.Roots(rows)(t.Context()) {
		must(t, err)
		kept[root.ID] = true
	}
	if !kept[number(1).ID] || !kept[number(2).ID] {
		t.Errorf("kept: %v", kept)
	}
}
