package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
)

func sweepCases() []Case {
	return []Case{
		{Name: "sweep-removes-dead-blobs", Func: ifSweeper(sweepDead)},
		{Name: "sweep-keeps-the-new-generation", Bytes: 300 << 10, Func: ifSweeper(sweepGeneration)},
		{Name: "sweep-respects-grace", Func: ifSweeper(sweepGrace)},
		{Name: "sweep-keeps-bases", Func: ifSweeper(sweepBases)},
		{Name: "sweep-dry-run", Func: ifSweeper(sweepDryRun)},
		{Name: "sweep-refuses-what-would-remove-too-much", Func: ifSweeper(sweepRefuses)},
		{Name: "generations-grow", Func: ifSweeper(generationsGrow)},
		{Name: "blob-without-its-base-is-refused", Func: ifSweeper(baseMissing)},
		{Name: "swept-blob-can-be-put-again", Func: ifSweeper(putAfterSweep)},
		{Name: "sweep-with-done-context", Func: ifSweeper(sweepDoneContext)},
	}
}

func ifSweeper(fn func(context.Context, blob.Store, blob.Sweeper) error) func(context.Context, blob.Store) error {
	return func(ctx context.Context, s blob.Store) error {
		sweeper, ok := s.(blob.Sweeper)
		if !ok {
			return nil
		}
		return fn(ctx, s, sweeper)
	}
}

// live returns a Live function that marks only the named blobs as dead, so that no
// case harms other blobs in the store.
func live(dead ...blob.Blob) func(blob.ID) bool {
	return func(id blob.ID) bool {
		return !slices.ContainsFunc(dead, func(b blob.Blob) bool { return b.ID == id })
	}
}

// sweep opens a generation and sweeps it.
func sweep(ctx context.Context, w blob.Sweeper, opts blob.SweepOptions) (blob.SweepResult, error) {
	generation, err := w.Begin(ctx)
	if err != nil {
		return blob.SweepResult{}, fmt.Errorf("begin: %w", err)
	}
	result, err := w.Sweep(ctx, generation, opts)
	if err != nil {
		return result, fmt.Errorf("sweep: %w", err)
	}
	return result, nil
}

// sweepRefuses requests sweeps that could remove needed blobs: without Live, and of a
// generation that was never opened.
func sweepRefuses(ctx context.Context, s blob.Store, w blob.Sweeper) error {
	b := blob.New([]byte("kept from careless sweeps"))
	if err := s.Put(ctx, b); err != nil {
		return err
	}
	generation, err := w.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := w.Sweep(ctx, generation, blob.SweepOptions{}); err == nil {
		return errors.New("sweep without Live: no error")
	}
	if _, err := w.Sweep(ctx, generation+1000, blob.SweepOptions{Live: live(b)}); err == nil {
		return errors.New("sweep of a generation that was not opened: no error")
	}
	if _, err := s.Get(ctx, b.ID); err != nil {
		return fmt.Errorf("after refused sweeps: %w", err)
	}
	return nil
}

func wantRemoved(r blob.SweepResult, want int64) error {
	if r.Removed != want {
		return fmt.Errorf("sweep: removed %d blobs, want %d", r.Removed, want)
	}
	return nil
}

func sweepDead(ctx context.Context, s blob.Store, w blob.Sweeper) error {
	dead, alive, large := freshBlob(1000), freshBlob(2000), freshBlob(300<<10)
	if err := put(ctx, s, dead, alive, large); err != nil {
		return err
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	result, err := sweep(ctx, w, blob.SweepOptions{Live: live(dead, large)})
	if err != nil {
		return err
	}
	if result.RemovedBytes <= 0 || result.Kept < 1 || result.KeptBytes <= 0 {
		return fmt.Errorf("sweep: implausible result %+v", result)
	}
	return errors.Join(
		wantRemoved(result, 2),
		wantAbsent(ctx, s, dead.ID, large.ID),
		wantContent(ctx, s, alive.ID, alive.Data))
}

// sweepGeneration writes unreferenced blobs between Begin and Sweep.
func sweepGeneration(ctx context.Context, s blob.Store, w blob.Sweeper) error {
	old, again, streamed, fresh := freshBlob(100), freshBlob(200), freshBlob(250), freshBlob(300)
	large, largeStreamed := freshBlob(300<<10), freshBlob(300<<10) // drivers may keep them elsewhere and lose their generation
	if err := put(ctx, s, old, again, streamed, large, largeStreamed); err != nil {
		return err
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	generation, err := w.Begin(ctx)
	if err != nil {
		return err
	}
	if err := put(ctx, s, again, fresh, large); err != nil {
		return err
	}
	for _, b := range []blob.Blob{streamed, largeStreamed} {
		if err := blob.PutFrom(ctx, s, b.ID, newReader(b.Data), int64(len(b.Data))); err != nil {
			return err
		}
	}
	result, err := w.Sweep(ctx, generation, blob.SweepOptions{Live: live(old, again, streamed, fresh, large, largeStreamed)})
	if err != nil {
		return err
	}
	return errors.Join(
		wantRemoved(result, 1),
		wantAbsent(ctx, s, old.ID),
		wantContent(ctx, s, again.ID, again.Data),
		wantContent(ctx, s, streamed.ID, streamed.Data),
		wantContent(ctx, s, large.ID, large.Data),
		wantContent(ctx, s, largeStreamed.ID, largeStreamed.Data),
		wantContent(ctx, s, fresh.ID, fresh.Data))
}

func sweepGrace(ctx context.Context, s blob.Store, w blob.Sweeper) error {
	b := freshBlob(1000)
	if err := put(ctx, s, b); err != nil {
		return err
	}
	for _, grace := range []int64{3600, 1 << 40, 1 << 62} { // includes values that overflow a duration
		result, err := sweep(ctx, w, blob.SweepOptions{Live: live(b), GraceSeconds: grace})
		if err != nil {
			return err
		}
		if err := errors.Join(wantRemoved(result, 0), wantContent(ctx, s, b.ID, b.Data)); err != nil {
			return fmt.Errorf("grace of %d seconds: %w", grace, err)
		}
	}
	if _, err := sweep(ctx, w, blob.SweepOptions{Live: live(b)}); err != nil {
		return err
	}
	return wantAbsent(ctx, s, b.ID)
}

// sweepBases builds top → middle → bottom, of which only top is live.
func sweepBases(ctx context.Context, s blob.Store, w blob.Sweeper) error {
	bottom, middle, top := freshBlob(100), freshBlob(200), freshBlob(300)
	middle.Base, top.Base = bottom.ID, middle.ID
	for _, b := range []blob.Blob{bottom, middle, top} {
		if err := put(ctx, s, b); err != nil {
			return err
		}
	}
	if err := wantBases(ctx, s, bottom, middle, top); err != nil {
		return err
	}
	result, err := sweep(ctx, w, blob.SweepOptions{Live: live(bottom, middle)})
	if err != nil {
		return err
	}
	err = errors.Join(
		wantRemoved(result, 0),
		wantContent(ctx, s, bottom.ID, bottom.Data),
		wantContent(ctx, s, middle.ID, middle.Data),
		wantContent(ctx, s, top.ID, top.Data))
	if err != nil {
		return err
	}
	result, err = sweep(ctx, w, blob.SweepOptions{Live: live(bottom, middle, top)})
	if err != nil {
		return err
	}
	return errors.Join(wantRemoved(result, 3), wantAbsent(ctx, s, bottom.ID, middle.ID, top.ID))
}

// wantBases checks the bases that a lister reports.
func wantBases(ctx context.Context, s blob.Store, blobs ...blob.Blob) error {
	lister, ok := s.(blob.Lister)
	if !ok {
		return nil
	}
	infos, err := listAll(ctx, lister, blob.ID{})
	if err != nil {
		return err
	}
	for _, b := range blobs {
		i := slices.IndexFunc(infos, func(i blob.Info) bool { return i.ID == b.ID })
		if i < 0 || infos[i].Base != b.Base {
			return fmt.Errorf("list: %s is not there or not with its base", b.ID.Short())
		}
	}
	return nil
}

func sweepDryRun(ctx context.Context, s blob.Store, w blob.Sweeper) error {
	b := freshBlob(1000)
	if err := put(ctx, s, b); err != nil {
		return err
	}
	dry, err := sweep(ctx, w, blob.SweepOptions{Live: live(b), DryRun: true})
	if err != nil {
		return err
	}
	if err := errors.Join(wantRemoved(dry, 1), wantContent(ctx, s, b.ID, b.Data)); err != nil {
		return fmt.Errorf("dry run: %w", err)
	}
	wet, err := sweep(ctx, w, blob.SweepOptions{Live: live(b)})
	if err != nil {
		return err
	}
	if dry.RemovedBytes != wet.RemovedBytes {
		return fmt.Errorf("dry run counted %d bytes, the sweep removed %d", dry.RemovedBytes, wet.RemovedBytes)
	}
	return wantAbsent(ctx, s, b.ID)
}

func generationsGrow(ctx context.Context, s blob.Store, w blob.Sweeper) error {
	b := freshBlob(100)
	first, err := w.Begin(ctx)
	if err != nil {
		return err
	}
	if err := put(ctx, s, b); err != nil {
		return err
	}
	second, err := w.Begin(ctx)
	if err != nil {
		return err
	}
	if second <= first {
		return fmt.Errorf("begin: generation %d after %d", second, first)
	}
	// A collector that began before b was put must not remove it, even if another one
	// has begun since.
	result, err := w.Sweep(ctx, first, blob.SweepOptions{Live: live(b)})
	if err != nil {
		return err
	}
	return errors.Join(wantRemoved(result, 0), wantContent(ctx, s, b.ID, b.Data))
}

// baseMissing tests a writer that chose a base against a sweep that has removed it: a
// blob that can never be read must not be acknowledged.
func baseMissing(ctx context.Context, s blob.Store, _ blob.Sweeper) error {
	b := freshBlob(100)
	b.Base = freshBlob(100).ID
	if err := s.Put(ctx, b); !errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("put with an absent base: got %v, want ErrNotFound", err)
	}
	return wantAbsent(ctx, s, b.ID)
}

func putAfterSweep(ctx context.Context, s blob.Store, w blob.Sweeper) error {
	for _, n := range []int{100, 300 << 10} {
		b := freshBlob(n)
		for range 3 {
			if err := put(ctx, s, b); err != nil {
				return err
			}
			if err := wantContent(ctx, s, b.ID, b.Data); err != nil {
				return err
			}
			if _, err := sweep(ctx, w, blob.SweepOptions{Live: live(b)}); err != nil {
				return err
			}
			if err := wantAbsent(ctx, s, b.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func sweepDoneContext(ctx context.Context, s blob.Store, w blob.Sweeper) error {
	b := freshBlob(100)
	if err := put(ctx, s, b); err != nil {
		return err
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := w.Begin(done); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("begin with a context that is done: got %v, want context.Canceled", err)
	}
	generation, err := w.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := w.Sweep(done, generation, blob.SweepOptions{Live: live(b)}); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("sweep with a context that is done: got %v, want context.Canceled", err)
	}
	return wantContent(ctx, s, b.ID, b.Data)
}
