package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
)

// scanner is a running scan.
type scanner struct {
	ctx     context.Context // of the whole scan: it ends with the first error
	fail    context.CancelCauseFunc
	store   blob.Store
	root    dirFD
	maxFile int64
	opts    Options
	given   given
	trust   trust
	open    openFiles
	owner   int64 // of restored files, -1 if that is not known
	noModes bool  // the file system stores no permission bits
	mayFold func() bool

	queue jobQueue

	mu      sync.Mutex // guards what follows
	skipped []Skipped
	notKept NotKept
	stats   Stats
}

func scan(ctx context.Context, store blob.Store, root string, prev *Index, paths []string, opts *Options) (*Result, error) {
	s := &scanner{store: store, queue: newJobQueue()}
	if opts != nil {
		s.opts = *opts
		s.given = opts.given()
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("scan %s: %w", root, err)
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("scan %s: %w", root, err)
	}
	if !s.opts.Force {
		if err := RootAllowed(root); err != nil {
			return nil, err
		}
	}
	if prev, err = usableIndex(ctx, store, prev); err != nil {
		return nil, fmt.Errorf("scan %s: %w", root, err)
	}
	job, err := s.rootJob(root, prev, paths)
	if err != nil {
		return nil, fmt.Errorf("scan %s: %w", root, err)
	}
	s.setLimits()
	if s.root, err = openRoot(root); err != nil {
		return nil, fmt.Errorf("scan %s: %w", root, err)
	}
	defer s.root.close()
	s.owner = restoredOwner(s.root)
	s.noModes = !hasModes(root)
	s.mayFold = sync.OnceValue(func() bool { return mayFold(root) })
	if s.trust, err = newTrust(s.root, prev, prev == nil || paths == nil); err != nil {
		return nil, fmt.Errorf("scan %s: %w", root, err)
	}
	if s.opts.Full {
		s.trust.believe = false
	}
	res, err := s.run(ctx, prev, job)
	if err != nil {
		return nil, fmt.Errorf("scan %s: %w", root, err)
	}
	return res, nil
}

func (s *scanner) setLimits() {
	switch {
	case s.opts.MaxFile == 0:
		s.maxFile = DefaultMaxFile
	case s.opts.MaxFile < 0:
		s.maxFile = math.MaxInt64
	default:
		s.maxFile = s.opts.MaxFile
	}
	if s.opts.Workers <= 0 {
		s.opts.Workers = max(2, runtime.GOMAXPROCS(0))
	}
	if s.opts.ProgressEvery <= 0 {
		s.opts.ProgressEvery = 200 * time.Millisecond
	}
}

// usableIndex drops an index whose tree is not in the store: blobs that the index has
// as stored would be missing from the new tree.
func usableIndex(ctx context.Context, store blob.Store, prev *Index) (*Index, error) {
	if prev == nil || prev.Tree().IsZero() {
		return nil, nil
	}
	has, err := store.Has(ctx, prev.Tree())
	if err != nil {
		return nil, err
	}
	if !has[0] {
		return nil, nil
	}
	return prev, nil
}

// rootJob makes the job for the root directory.
func (s *scanner) rootJob(root string, prev *Index, paths []string) (*dirJob, error) {
	job := &dirJob{rules: s.given.rules()}
	if len(s.opts.Touched) > 0 {
		job.touched = &pathSet{}
		if err := job.touched.addAll(root, s.opts.Touched, false); err != nil {
			return nil, err
		}
		job.forced = job.touched.all
	}
	if prev == nil {
		return job, nil
	}
	job.prevRef = prev.root
	if paths == nil {
		prev.root.readWhole()
	} else {
		job.hints = &pathSet{}
		if err := job.hints.addAll(root, paths, !s.opts.NoIgnore); err != nil {
			return nil, err
		}
		if err := job.hints.addAll(root, s.opts.Touched, false); err != nil {
			return nil, err
		}
	}
	return job, nil
}

func (s *scanner) run(ctx context.Context, prev *Index, job *dirJob) (*Result, error) {
	s.ctx, s.fail = context.WithCancelCause(ctx)
	defer s.fail(nil)
	stopProgress := s.startProgress()
	stopWatch := context.AfterFunc(s.ctx, s.queue.close)
	s.queue.push(job)
	var wg sync.WaitGroup
	for range s.opts.Workers {
		wg.Go(func() {
			if err := newWorker(s).loop(); err != nil {
				s.fail(err)
			}
		})
	}
	wg.Wait()
	s.queue.drain()
	stopWatch()
	stopProgress()
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	if job.result == nil {
		return nil, errors.New("cannot read the root directory")
	}
	res := &Result{Tree: job.result.node, Index: &Index{root: job.result, era: s.trust.era}, NotCaptured: s.skipped, NotKept: s.notKept, Stats: s.stats}
	slices.SortFunc(res.NotCaptured, func(a, b Skipped) int { return cmp.Compare(a.Path, b.Path) })
	err := s.compare(ctx, res, prev)
	if s.opts.NoContents {
		res.Index = nil // the next scan would take the contents as stored
	}
	return res, err
}

// compare records what the scan changed.
func (s *scanner) compare(ctx context.Context, res *Result, prev *Index) (err error) {
	news := newAdded(res.Stats.Stored)
	if prev == nil {
		err = news.tree(ctx, s.store, res.Index.root)
	} else {
		res.Base = prev.Tree()
		d := differ{ctx: ctx, store: s.store, lenient: true, added: news}
		err = d.dirs("", prev.root, res.Index.root)
		res.Changed = d.changes
	}
	if err != nil {
		return err
	}
	res.AddedFiles = news.files
	res.Added, err = news.all(ctx, s.store)
	return err
}

// startProgress calls the progress function until stop is called.
func (s *scanner) startProgress() (stop func()) {
	if s.opts.Progress == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(s.opts.ProgressEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				s.mu.Lock()
				stats := s.stats
				s.mu.Unlock()
				s.opts.Progress(stats)
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// jobQueue hands out work, newest first: that walks the tree depth first, so that
// only directories on the current path are unfinished.
type jobQueue struct {
	mu     *sync.Mutex // guards the rest
	wake   *sync.Cond
	jobs   []task
	busy   int // workers that may still push
	closed bool
}

// task is a part of a directory: the directory itself if hi is 0, else the names from
// lo to hi.
type task struct {
	job    *dirJob
	lo, hi int
}

func newJobQueue() jobQueue {
	mu := &sync.Mutex{}
	return jobQueue{mu: mu, wake: sync.NewCond(mu)}
}

func (q *jobQueue) push(j *dirJob) { q.pushTask(task{job: j}) }

func (q *jobQueue) pushTask(t task) {
	q.mu.Lock()
	q.jobs = append(q.jobs, t)
	q.mu.Unlock()
	q.wake.Signal()
}

// next waits for a task; ok is false when there are no more. had means that the
// worker has finished a task and pushes nothing more.
func (q *jobQueue) next(had bool) (t task, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if had {
		q.busy--
	}
	for len(q.jobs) == 0 && q.busy > 0 && !q.closed {
		q.wake.Wait()
	}
	if len(q.jobs) == 0 || q.closed {
		q.wake.Broadcast()
		return task{}, false
	}
	t = q.jobs[len(q.jobs)-1]
	q.jobs = q.jobs[:len(q.jobs)-1]
	q.busy++
	return t, true
}

// drain closes the directories of unfinished tasks after a failure.
func (q *jobQueue) drain() {
	for _, t := range q.jobs {
		if t.hi > 0 {
			t.job.rangeDone()
		}
	}
	q.jobs = nil
}

// close makes every worker stop after its current task.
func (q *jobQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake.Broadcast()
}
