package cloudagent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

// ref is a blob with its kind.
type ref struct {
	kind graph.Kind
	id   blob.ID
}

const (
	// fetchBatch is how many blobs are requested at once.
	fetchBatch = 256
	// maxHave limits how many of its blobs a follower remembers.
	maxHave = 1 << 20
)

// keep puts blobs of the stream into the cache. It skips blobs that do not match
// their id; they will be fetched.
func (f *follower) keep(ctx context.Context, blobs []*aiserverv1.PreFetchedBlob) error {
	if f.opts.Cache == nil {
		return nil
	}
	var good []blob.Blob
	for _, b := range blobs {
		if id, err := blob.IDFromBytes(b.GetId()); err == nil && blob.Sum(b.GetValue()) == id {
			good = append(good, blob.Blob{ID: id, Data: b.GetValue()})
		}
	}
	return f.put(ctx, good...)
}

func (f *follower) put(ctx context.Context, blobs ...blob.Blob) error {
	if len(blobs) == 0 {
		return nil
	}
	if err := f.opts.Cache.Put(ctx, blobs...); err != nil {
		return &cacheError{err}
	}
	return nil
}

// cacheError is a failure on our side, which a new connection does not fix.
type cacheError struct{ err error }

func (e *cacheError) Error() string { return "cache of followed agent: " + e.err.Error() }

func (e *cacheError) Unwrap() error { return e.err }

// complete fetches every blob that a state refers to into the cache, before the state
// is delivered.
func (f *follower) complete(ctx context.Context, e *Event) error {
	if e.StateID.IsZero() {
		return nil
	}
	if err := f.loadState(ctx, e); err != nil || f.opts.Cache == nil || f.opts.Fetch == nil {
		return err
	}
	if len(f.have) > maxHave {
		clear(f.have)
	}
	todo := []ref{{graph.CloudState, e.StateID}}
	fetched := make(map[blob.ID]struct{})
	for len(todo) > 0 {
		missing, err := f.walk(ctx, todo, fetched)
		if err != nil {
			return err
		}
		lost, err := f.fetch(ctx, missing)
		if err != nil {
			return err
		}
		for _, r := range missing {
			fetched[r.id] = struct{}{}
		}
		e.Missing = append(e.Missing, lost...)
		todo = slices.DeleteFunc(missing, func(r ref) bool { return slices.Contains(lost, r.id) })
	}
	return nil
}

// loadState stores the received state, or fetches one that was too large to be sent.
func (f *follower) loadState(ctx context.Context, e *Event) error {
	if e.State != nil {
		if f.opts.Cache == nil {
			return nil
		}
		// It is stored if it encodes to the same bytes. With unknown fields between
		// others it does not, and is fetched.
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(e.State)
		if err != nil || blob.Sum(raw) != e.StateID {
			return nil
		}
		return f.put(ctx, blob.Blob{ID: e.StateID, Data: raw})
	}
	if f.opts.Fetch == nil {
		return nil
	}
	raw, err := f.stateBytes(ctx, e.StateID)
	if err != nil {
		return err
	}
	e.State = new(aiserverv1.CloudAgentState)
	if err := wirelimit.Unmarshal(raw, e.State, stateLimits); err != nil {
		return fmt.Errorf("%w: state %s: %w", ErrDataLoss, e.StateID, err)
	}
	return nil
}

func (f *follower) stateBytes(ctx context.Context, id blob.ID) ([]byte, error) {
	if f.opts.Cache != nil {
		if raw, err := f.opts.Cache.Get(ctx, id); err == nil {
			return raw, nil
		}
	}
	got, err := f.opts.Fetch(ctx, []blob.ID{id})
	if err != nil {
		return nil, fmt.Errorf("fetch state: %w", err)
	}
	for _, b := range got {
		if b.ID == id && blob.Sum(b.Data) == id {
			if f.opts.Cache == nil {
				return b.Data, nil
			}
			return b.Data, f.put(ctx, b)
		}
	}
	return nil, fmt.Errorf("%w: cannot fetch state %s", ErrDataLoss, id)
}

// walk follows references through the cache and returns the missing blobs. A blob
// that is damaged in the cache counts as missing: storing it again repairs it. One
// that is damaged although it was just fetched is an error of the cache.
func (f *follower) walk(ctx context.Context, todo []ref, fetched map[blob.ID]struct{}) ([]ref, error) {
	var missing, leaves []ref
	seen := make(map[ref]struct{})
	for len(todo) > 0 {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		_, had := f.have[r]
		if _, twice := seen[r]; had || twice {
			continue
		}
		seen[r] = struct{}{}
		if r.kind.Leaf() {
			leaves = append(leaves, r)
			continue
		}
		data, err := f.opts.Cache.Get(ctx, r.id)
		_, again := fetched[r.id]
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) && !again {
			missing = append(missing, r)
			continue
		}
		if err != nil {
			return nil, &cacheError{err}
		}
		refs, err := graph.Refs(r.kind, data)
		if err != nil {
			return nil, fmt.Errorf("%w: %s %s: %w", ErrDataLoss, r.kind, r.id, err)
		}
		f.have[r] = struct{}{}
		for _, next := range refs {
			todo = append(todo, ref{next.Kind, next.ID})
		}
	}
	absent, err := f.absent(ctx, leaves)
	return append(missing, absent...), err
}

func (f *follower) absent(ctx context.Context, leaves []ref) ([]ref, error) {
	if len(leaves) == 0 {
		return nil, nil
	}
	ids := make([]blob.ID, len(leaves))
	for i, r := range leaves {
		ids[i] = r.id
	}
	has, err := f.opts.Cache.Has(ctx, ids...)
	if err != nil {
		return nil, &cacheError{err}
	}
	var missing []ref
	for i, r := range leaves {
		if has[i] {
			f.have[r] = struct{}{}
		} else {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

// fetch fetches blobs into the cache and returns those that the peer cannot provide.
func (f *follower) fetch(ctx context.Context, missing []ref) (lost []blob.ID, err error) {
	for batch := range slices.Chunk(missing, fetchBatch) {
		want := make(map[blob.ID]struct{}, len(batch))
		ids := make([]blob.ID, 0, len(batch))
		for _, r := range batch {
			if _, twice := want[r.id]; !twice {
				want[r.id] = struct{}{}
				ids = append(ids, r.id)
			}
		}
		got, err := f.opts.Fetch(ctx, ids)
		if err != nil {
			return nil, fmt.Errorf("fetch %d blobs: %w", len(ids), err)
		}
		got = slices.DeleteFunc(got, func(b blob.Blob) bool { return blob.Sum(b.Data) != b.ID })
		for _, b := range got {
			delete(want, b.ID)
		}
		for _, id := range ids {
			if _, absent := want[id]; absent {
				lost = append(lost, id)
			}
		}
		if err := f.put(ctx, got...); err != nil {
			return nil, err
		}
	}
	return lost, nil
}
