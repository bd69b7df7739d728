package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/meter"
	"github.com/stet-dev/stet/meter/otelmeter"
)

// Task is housekeeping that one node of a fleet does at a time. It must be safe to
// stop at any point and to run on two nodes at once.
type Task struct {
	// Name is one word of lower-case letters.
	Name string
	// Every is the time from the end of a run, on any node, to the next one.
	Every time.Duration
	// Run does the work and returns how many items it handled.
	Run func(ctx context.Context) (done int64, err error)
}

// TaskState is the last run of a task, on any node.
type TaskState struct {
	Name string `json:"name"`
	// Node ran it last. Running is the node that is running it now, or empty.
	Node    string `json:"node"`
	Running string `json:"running,omitempty"`
	// Began and Ended are the times of the last run that ended, by the database's clock,
	// and Succeeded is the end of the last one without an error. Before the first run,
	// Began is zero and Ended is when a node first registered the task.
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended"`
	Succeeded time.Time `json:"succeeded,omitzero"`
	// Done is how many items it handled, Error why it failed.
	Done  int64  `json:"done"`
	Error string `json:"error,omitempty"`
}

const (
	// minCheck and maxCheck limit how often a node looks whether a task is due.
	minCheck = 200 * time.Millisecond
	maxCheck = time.Minute
	// retryFailed is the longest time to the next run after one that failed.
	retryFailed = 10 * time.Minute
)

func taskKey(name string) string { return keyspace.Setting("house:" + name) }

// pausedKey is the row with the time until which no task begins.
var pausedKey = keyspace.Setting("house-paused")

// PauseHouse keeps tasks from starting, on any node, before a time by the database's
// clock, for example during a backup. The zero time ends a pause.
func (f *Fleet) PauseHouse(ctx context.Context, until time.Time) error {
	batch := &kv.Batch{Delete: []string{pausedKey}}
	if !until.IsZero() {
		batch = &kv.Batch{Set: []kv.Set{{Key: pausedKey, Value: []byte(until.UTC().Format(time.RFC3339))}}}
	}
	if err := f.system.Commit(ctx, batch); err != nil {
		return fmt.Errorf("pause housekeeping: %w", err)
	}
	return nil
}

// HousePaused returns the end of a pause, or the zero time if there is none.
func (f *Fleet) HousePaused(ctx context.Context) (time.Time, error) {
	row, err := f.system.Get(ctx, pausedKey)
	if errors.Is(err, kv.ErrNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read the pause of housekeeping: %w", err)
	}
	until, err := time.Parse(time.RFC3339, string(row.Value))
	if err != nil || !until.After(f.db.Now()) {
		return time.Time{}, nil
	}
	return until, nil
}

// House returns the states of the tasks that have run.
func (f *Fleet) House(ctx context.Context) ([]TaskState, error) {
	var states []TaskState
	for row, err := range f.system.Scan(ctx, keyspace.Prefix(taskKey("")), kv.ScanOptions{}) {
		if err != nil {
			return nil, fmt.Errorf("read the states of housekeeping: %w", err)
		}
		var s TaskState
		if json.Unmarshal(row.Value, &s) != nil {
			continue
		}
		states = append(states, s)
	}
	for i, s := range states {
		var err error
		if states[i].Running, err = f.Lease("house:" + s.Name).Holder(ctx); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// state returns the state of a task, zero if it has never run.
func (f *Fleet) state(ctx context.Context, name string) (s TaskState, err error) {
	row, err := f.system.Get(ctx, taskKey(name))
	if errors.Is(err, kv.ErrNotFound) {
		return TaskState{Name: name}, nil
	}
	if err == nil && json.Unmarshal(row.Value, &s) != nil {
		return TaskState{Name: name}, nil
	}
	return s, err
}

// KeepHouse runs tasks when they are due, each on one node at a time, until ctx is done.
// Failures of a task are part of its state, and it is tried again.
func (f *Fleet) KeepHouse(ctx context.Context, tasks ...Task) {
	stop := f.measureHouse(tasks)
	defer stop()
	var work sync.WaitGroup
	for _, task := range tasks {
		work.Go(func() {
			for {
				wait := f.keep(ctx, task)
				if sleep(ctx, wait) != nil {
					return
				}
			}
		})
	}
	work.Wait()
}

// keep runs a task if it is due, and returns when to look again.
func (f *Fleet) keep(ctx context.Context, task Task) time.Duration {
	check := min(max(task.Every/10, minCheck), maxCheck)
	left, err := f.due(ctx, task)
	if err != nil {
		return check
	}
	if left > 0 {
		return min(left, check)
	}
	_, _ = f.Lease("house:"+task.Name).Hold(ctx, func(ctx context.Context) error {
		// Another node may have run it between the check and the lease.
		if left, err := f.due(ctx, task); err != nil || left > 0 {
			return err
		}
		return f.runTask(ctx, task)
	})
	return check
}

// due returns the time to the next run of a task.
func (f *Fleet) due(ctx context.Context, task Task) (time.Duration, error) {
	s, err := f.state(ctx, task.Name)
	if err != nil {
		return 0, err
	}
	if s.Ended.IsZero() { // a node that starts does not begin with all the work at once
		s.Ended = f.db.Now().UTC()
		return task.Every, f.note(ctx, s)
	}
	every := task.Every
	if s.Error != "" {
		every = min(every, retryFailed)
	}
	left := s.Ended.Add(every).Sub(f.db.Now())
	if left <= 0 {
		until, err := f.HousePaused(ctx)
		if err != nil || !until.IsZero() {
			return until.Sub(f.db.Now()), err
		}
	}
	return left, nil
}

// note stores the state of a task.
func (f *Fleet) note(ctx context.Context, s TaskState) error {
	value, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return f.system.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: taskKey(s.Name), Value: value}}})
}

// runTask runs a task and records the outcome.
func (f *Fleet) runTask(ctx context.Context, task Task) error {
	before, err := f.state(ctx, task.Name)
	if err != nil {
		return err
	}
	s := TaskState{Name: task.Name, Node: f.node, Began: f.db.Now().UTC(), Succeeded: before.Succeeded}
	s.Done, err = task.Run(ctx)
	if err != nil && ctx.Err() != nil {
		return err // this node is stopping or has lost the lease; another one continues
	}
	s.Ended = f.db.Now().UTC()
	if err != nil {
		s.Error = firstLine(err)
	} else {
		s.Succeeded = s.Ended
	}
	return f.note(ctx, s)
}

// firstLine is the text of an error as one line of a reasonable length.
func firstLine(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	return strings.ToValidUTF8(text[:min(len(text), 1000)], "")
}

// measureHouse reports when tasks last succeeded on any node and whether the last run
// failed.
func (f *Fleet) measureHouse(tasks []Task) (stop func()) {
	provider := f.config.Options.MeterProvider
	if provider == nil {
		provider = otelmeter.Global()
	}
	var gauges []meter.Gauge
	for _, task := range tasks {
		gauges = append(gauges,
			meter.Gauge{Name: "stet.house." + task.Name + ".succeeded_time", Description: "When the task last succeeded on any node, in seconds since 1970."},
			meter.Gauge{Name: "stet.house." + task.Name + ".failed", Description: "1 if the last run failed."})
	}
	return meter.Of(provider, "github.com/stet-dev/stet/fleet").Gauges(func(ctx context.Context) ([]int64, error) {
		values := make([]int64, 0, len(gauges))
		for _, task := range tasks {
			s, err := f.state(ctx, task.Name)
			if err != nil {
				return nil, err
			}
			succeeded, failed := int64(0), int64(0)
			if !s.Succeeded.IsZero() {
				succeeded = s.Succeeded.Unix()
			}
			if s.Error != "" {
				failed = 1
			}
			values = append(values, succeeded, failed)
		}
		return values, nil
	}, gauges...)
}

// EachTenant calls fn with the store of every tenant, one at a time. It continues
// with the others if one fails.
func (f *Fleet) EachTenant(ctx context.Context, fn func(ctx context.Context, name string, db *stet.DB) error) error {
	names, err := f.Tenants(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if err := f.withTenant(ctx, name, fn); err != nil {
			errs = append(errs, fmt.Errorf("tenant %s: %w", name, err))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

func (f *Fleet) withTenant(ctx context.Context, name string, fn func(context.Context, string, *stet.DB) error) error {
	db, err := f.Open(ctx, name)
	if errors.Is(err, ErrMigrating) {
		return nil // it is not a tenant yet
	}
	if err != nil {
		return err
	}
	return errors.Join(fn(ctx, name, db), db.Close())
}
