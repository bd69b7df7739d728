package kvtest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest"
	"github.com/stet-dev/stet/kv/kvtest/kvcases"
	"github.com/stet-dev/stet/kv/memkv"
)

// TestOverlapCasesCatchTheirFault gives each case about commits side by side the store
// that it is meant to find. The stores wait for the other commit, so that both always
// meet.
func TestOverlapCasesCatchTheirFault(t *testing.T) {
	for name, broken := range map[string]kv.Store{
		"batches name the same rows in any order":        &locksAsTheyCome{Store: memkv.New(nil), met: make(chan struct{})},
		"deletes and sets of the same rows side by side": &setsOneByOne{Store: memkv.New(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(kvtest.Cases(), func(c kvtest.Case) bool { return c.Name == name })
			if i < 0 {
				t.Fatal("there is no such case")
			}
			if kvtest.Cases()[i].Func(t.Context(), broken) == nil {
				t.Error("the case passed")
			}
		})
	}
}

// TestOutrunCommitsAreCaught has commits that give up when a collector begins.
func TestOutrunCommitsAreCaught(t *testing.T) {
	blobs := &announcing{Store: memblob.New(), begun: make(chan struct{})}
	rows := &outrun{Store: memkv.New(blobs), blobs: blobs}
	for _, c := range kvcases.Refs() {
		if c.Name == "commits go on while collectors begin" {
			if c.Func(t.Context(), rows, blobs) == nil {
				t.Error("the case passed")
			}
			return
		}
	}
	t.Fatal("there is no such case")
}

// locksAsTheyCome locks the rows of a batch in its order. A batch that waits for a row
// of another one, which waits for a row of the first, fails.
type locksAsTheyCome struct {
	kv.Store
	mu    sync.Mutex // guards first
	first []string   // the rows that batches locked first
	met   chan struct{}
}

func (s *locksAsTheyCome) Commit(ctx context.Context, b *kv.Batch) error {
	if len(b.Set) < 2 {
		return s.Store.Commit(ctx, b)
	}
	first, last := b.Set[0].Key, b.Set[len(b.Set)-1].Key
	s.mu.Lock()
	if slices.Contains(s.first, last) && !slices.Contains(s.first, first) {
		close(s.met)
	}
	s.first = append(s.first, first)
	s.mu.Unlock()
	<-s.met
	return errors.New("two batches wait for each other")
}

// setsOneByOne makes the rows of a batch visible one after the other. It does so once,
// and waits until a commit has looked at them in between.
type setsOneByOne struct {
	kv.Store
	changes sync.Mutex // held by batches that change rows
	split   bool       // guarded by changes

	mu      sync.Mutex    // held between a look at the rows and its note in checked
	checked chan struct{} // closed by the next look; nil where nobody waits
}

func (s *setsOneByOne) Commit(ctx context.Context, b *kv.Batch) error {
	if len(b.Set)+len(b.DeleteRange) == 0 {
		return s.look(ctx, b)
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	if len(b.Set) < 2 || s.split {
		return s.Store.Commit(ctx, b)
	}
	s.split = true
	checked, err := s.begin(ctx, b)
	if err != nil {
		return err
	}
	<-checked
	return s.Store.Commit(ctx, &kv.Batch{Set: b.Set[1:]})
}

// look runs a batch of expectations.
func (s *setsOneByOne) look(ctx context.Context, b *kv.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.Store.Commit(ctx, b)
	if err == nil && s.checked != nil {
		close(s.checked)
		s.checked = nil
	}
	return err
}

// begin sets the first row of a batch.
func (s *setsOneByOne) begin(ctx context.Context, b *kv.Batch) (checked chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	checked = make(chan struct{})
	s.checked = checked
	return checked, s.Store.Commit(ctx, &kv.Batch{Set: b.Set[:1]})
}

// announcing closes a channel when a generation begins.
type announcing struct {
	*memblob.Store
	mu    sync.Mutex // guards begun
	begun chan struct{}
}

func (s *announcing) Begin(ctx context.Context) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.begun)
	s.begun = make(chan struct{})
	return s.Store.Begin(ctx)
}

func (s *announcing) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// outrun gives a commit up when a generation begins meanwhile.
type outrun struct {
	kv.Store
	blobs *announcing
}

func (s *outrun) Commit(ctx context.Context, b *kv.Batch) error {
	if len(b.Refs) == 0 {
		return s.Store.Commit(ctx, b)
	}
	<-s.blobs.next()
	return errors.New("another generation has begun")
}
