package contract

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/overlap"
)

func replaceCases() []Case {
	return []Case{
		{Name: "replace-exchanges-bytes", Bytes: 300 << 10, Func: ifReplacer(replaceBytes)},
		{Name: "replace-adds-and-drops-a-base", Func: ifReplacer(replaceBase)},
		{Name: "replace-changes-a-base", Func: ifReplacer(replaceOtherBase)},
		{Name: "replace-passes-over-what-cannot-lean", Bytes: 300 << 10, Func: ifReplacer(replacePasses)},
		{Name: "replace-makes-no-circle", Func: ifReplacer(replaceCircle)},
		{Name: "replace-leaves-the-generation", Func: ifReplacer(replaceGeneration)},
		{Name: "replace-beside-sweeps", Bytes: 300 << 10, Func: ifReplacer(replaceBesideSweeps)},
		{Name: "put-repairs-a-damaged-blob", Bytes: 300 << 10, Func: ifReplacer(putRepairs)},
		{Name: "replace-with-done-context", Func: ifReplacer(replaceDoneContext)},
	}
}

// exchanger has what the cases need to observe a base.
type exchanger interface {
	blob.Store
	blob.Replacer
	blob.Sweeper
}

// ifReplacer skips layers whose store below cannot replace.
func ifReplacer(fn func(context.Context, exchanger) error) func(context.Context, blob.Store) error {
	return func(ctx context.Context, s blob.Store) error {
		r, ok := s.(exchanger)
		if !ok || errors.Is(r.Replace(ctx), errors.ErrUnsupported) {
			return nil
		}
		return fn(ctx, r)
	}
}

// leaning returns the same blob with another base; in a shared store, the content
// must keep matching its name.
func leaning(b blob.Blob, base blob.ID) blob.Blob {
	b.Base = base
	return b
}

func replace(ctx context.Context, s exchanger, blobs ...blob.Blob) error {
	if err := s.Replace(ctx, blobs...); err != nil {
		return fmt.Errorf("replace %d blobs: %w", len(blobs), err)
	}
	return nil
}

// wantLeft sweeps unneeded blobs and checks which of them stay.
func wantLeft(ctx context.Context, s exchanger, dead []blob.Blob, left ...blob.Blob) error {
	if _, err := sweep(ctx, s, blob.SweepOptions{Live: live(dead...)}); err != nil {
		return err
	}
	for _, b := range dead {
		stays := false
		for _, l := range left {
			stays = stays || l.ID == b.ID
		}
		if err := wantHas(ctx, s, stays, b.ID); err != nil {
			return fmt.Errorf("after a sweep: %w", err)
		}
	}
	return nil
}

// replaceBytes is the only case that leaves bytes that do not match their name, so it
// removes them.
func replaceBytes(ctx context.Context, s exchanger) error {
	a, b, absent := freshBlob(100), freshBlob(300<<10), freshBlob(50)
	if err := put(ctx, s, a, b); err != nil {
		return err
	}
	a.Data, b.Data = b.Data, a.Data
	if err := replace(ctx, s, a, absent, b); err != nil {
		return err
	}
	return errors.Join(
		wantContent(ctx, s, a.ID, a.Data),
		wantContent(ctx, s, b.ID, b.Data),
		wantAbsent(ctx, s, absent.ID),
		wantLeft(ctx, s, []blob.Blob{a, b}))
}

// putRepairs damages blobs and puts them again, in both ways of storing. Damage is
// noticed by a read.
func putRepairs(ctx context.Context, s exchanger) error {
	top := blob.Repairing(s, blob.ByReplacing(s))
	stores := map[string]func(blob.Blob) error{
		"put": func(b blob.Blob) error { return top.Put(ctx, b) },
		"put from": func(b blob.Blob) error {
			return blob.PutFrom(ctx, top, b.ID, newReader(b.Data), int64(len(b.Data)))
		},
	}
	for _, size := range []int{100, 300 << 10} {
		for name, store := range stores {
			b := freshBlob(size)
			if err := put(ctx, s, b); err != nil {
				return err
			}
			if err := replace(ctx, s, blob.Blob{ID: b.ID, Data: fresh(size)}); err != nil {
				return err
			}
			if data, err := readAll(ctx, blob.Checked(s), b.ID); !errors.Is(err, blob.ErrCorrupt) {
				return fmt.Errorf("read of a damaged blob: got %s, %v, want ErrCorrupt", describe(data), err)
			}
			if _, err := top.Get(ctx, b.ID); !errors.Is(err, blob.ErrCorrupt) {
				return fmt.Errorf("get of a damaged blob: got %v, want ErrCorrupt", err)
			}
			if err := errors.Join(store(b), top.Flush(ctx)); err != nil {
				return fmt.Errorf("%s over a damaged blob: %w", name, err)
			}
			if err := wantContent(ctx, top, b.ID, b.Data); err != nil {
				return fmt.Errorf("after %s over a damaged blob: %w", name, err)
			}
		}
	}
	return nil
}

func replaceBase(ctx context.Context, s exchanger) error {
	base, b := freshBlob(1000), freshBlob(2000)
	if err := put(ctx, s, base, b); err != nil {
		return err
	}
	if err := replace(ctx, s, leaning(b, base.ID)); err != nil {
		return err
	}
	err := errors.Join(
		wantBases(ctx, s, base, leaning(b, base.ID)),
		wantLeft(ctx, s, []blob.Blob{base}, base),
		wantContent(ctx, s, b.ID, b.Data))
	if err != nil {
		return fmt.Errorf("with a new base: %w", err)
	}
	if err := replace(ctx, s, leaning(b, base.ID)); err != nil { // same content
		return err
	}
	if err := wantBases(ctx, s, leaning(b, base.ID)); err != nil {
		return err
	}
	if err := replace(ctx, s, b); err != nil {
		return err
	}
	return errors.Join(
		wantBases(ctx, s, b),
		wantLeft(ctx, s, []blob.Blob{base}),
		wantContent(ctx, s, b.ID, b.Data))
}

func replaceOtherBase(ctx context.Context, s exchanger) error {
	one, other, b := freshBlob(1000), freshBlob(1000), freshBlob(2000)
	if err := put(ctx, s, one, other, leaning(b, one.ID)); err != nil {
		return err
	}
	if err := replace(ctx, s, leaning(b, other.ID)); err != nil {
		return err
	}
	return errors.Join(
		wantBases(ctx, s, leaning(b, other.ID)),
		wantLeft(ctx, s, []blob.Blob{one, other}, other),
		wantContent(ctx, s, b.ID, b.Data))
}

// replacePasses gives blobs missing bases, including a large blob, which a driver may
// keep elsewhere.
func replacePasses(ctx context.Context, s exchanger) error {
	base, kept, moved, large, absent := freshBlob(1000), freshBlob(2000), freshBlob(3000), freshBlob(300<<10), freshBlob(100)
	if err := put(ctx, s, base, leaning(kept, base.ID), moved, large); err != nil {
		return err
	}
	other := func(b blob.Blob) blob.Blob {
		b.Data = fresh(len(b.Data))
		return leaning(b, absent.ID)
	}
	if err := replace(ctx, s, other(kept), leaning(moved, base.ID), other(large)); err != nil {
		return err
	}
	return errors.Join(
		wantBases(ctx, s, leaning(kept, base.ID), leaning(moved, base.ID), large),
		wantContent(ctx, s, kept.ID, kept.Data),
		wantContent(ctx, s, moved.ID, moved.Data),
		wantContent(ctx, s, large.ID, large.Data))
}

func replaceCircle(ctx context.Context, s exchanger) error {
	bottom, middle, top := freshBlob(1000), freshBlob(1000), freshBlob(1000)
	if err := put(ctx, s, bottom, leaning(middle, bottom.ID), leaning(top, middle.ID)); err != nil {
		return err
	}
	one, other := freshBlob(1000), freshBlob(1000)
	if err := put(ctx, s, one, other); err != nil {
		return err
	}
	err := replace(ctx, s,
		leaning(bottom, top.ID), leaning(middle, middle.ID), // of stored blobs
		leaning(one, other.ID), leaning(other, one.ID)) // of blobs in the same call
	if err != nil {
		return err
	}
	return wantBases(ctx, s, bottom, leaning(middle, bottom.ID), leaning(top, middle.ID), leaning(one, other.ID), other)
}

func replaceGeneration(ctx context.Context, s exchanger) error {
	base, old := freshBlob(100), freshBlob(1000)
	if err := put(ctx, s, base, old); err != nil {
		return err
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	generation, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	if err := replace(ctx, s, leaning(old, base.ID)); err != nil {
		return err
	}
	if _, err := s.Sweep(ctx, generation, blob.SweepOptions{Live: live(old)}); err != nil {
		return err
	}
	return errors.Join(wantAbsent(ctx, s, old.ID), wantContent(ctx, s, base.ID, base.Data))
}

// replaceBesideSweeps gives blobs bases that come and go with a collector, and drops some
// again. Whichever call wins, every base that is needed exists afterwards.
func replaceBesideSweeps(ctx context.Context, s exchanger) error {
	const n = 12
	bases, blobs := make([]blob.Blob, n), make([]blob.Blob, n)
	for i := range n {
		bases[i], blobs[i] = freshBlob(200), freshBlob(300)
	}
	bases[1], blobs[n/2] = freshBlob(300<<10), freshBlob(300<<10) // drivers may keep them elsewhere
	if err := put(ctx, s, append(bases, blobs...)...); err != nil {
		return err
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	lean := func(i, on int) error {
		if err := replace(ctx, s, leaning(blobs[i], bases[on].ID)); err != nil {
			return err
		}
		if i%4 == 0 {
			return replace(ctx, s, blobs[i])
		}
		return nil
	}
	err := overlap.Run(n,
		func(round int) error { return lean(round%n, round%n) },
		func(round int) error { return lean(n-1-round%n, (n-round%n)%n) },
		func(int) error {
			if err := put(ctx, s, bases...); err != nil {
				return err
			}
			_, err := sweep(ctx, s, blob.SweepOptions{Live: live(bases...)})
			return err
		})
	if err != nil {
		return err
	}
	if _, err := sweep(ctx, s, blob.SweepOptions{Live: live(bases...)}); err != nil {
		return err
	}
	lister, ok := s.(blob.Lister)
	if !ok {
		return nil
	}
	infos, err := listAll(ctx, lister, blob.ID{})
	if err != nil {
		return err
	}
	stored := make(map[blob.ID]blob.Info, len(infos))
	for _, info := range infos {
		stored[info.ID] = info
	}
	for _, b := range blobs {
		if _, there := stored[stored[b.ID].Base]; !there && !stored[b.ID].Base.IsZero() {
			return fmt.Errorf("%s leans on %s, which was removed", b.ID.Short(), stored[b.ID].Base.Short())
		}
		if err := wantContent(ctx, s, b.ID, b.Data); err != nil {
			return err
		}
	}
	return nil
}

func replaceDoneContext(ctx context.Context, s exchanger) error {
	base, b := freshBlob(100), freshBlob(1000)
	if err := put(ctx, s, base, b); err != nil {
		return err
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Replace(done, leaning(b, base.ID)); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("replace with a context that is done: got %v, want context.Canceled", err)
	}
	return errors.Join(wantBases(ctx, s, b), wantContent(ctx, s, b.ID, b.Data))
}
