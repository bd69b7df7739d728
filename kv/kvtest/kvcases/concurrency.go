package kvcases

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stet-dev/stet/internal/overlap"
	"github.com/stet-dev/stet/kv"
)

var concurrency = []named{
	{"one of many writers wins", oneWins},
	{"increments are never lost", increments},
	{"batches of others do not fail each other", func(x *scratch) {
		var g errgroup.Group
		for i := range 16 {
			g.Go(func() error {
				for j := range 10 {
					name := fmt.Sprintf("%02d-%02d", i, j)
					b := &kv.Batch{Expect: []kv.Expect{x.expect(name, 0)}, Set: []kv.Set{x.set(name, name)}}
					if err := x.store.Commit(x.ctx, b); err != nil {
						return fmt.Errorf("commit of %s: %w", name, err)
					}
				}
				return nil
			})
		}
		x.must(g.Wait(), "commit side by side")
		if n := len(x.scan(x.all(), kv.ScanOptions{KeysOnly: true})); n != 160 {
			x.failf("%d rows after 160 commits", n)
		}
	}},
	{"rows of one batch move together", together},
	{"batches name the same rows in any order", anyOrder},
	{"deletes and sets of the same rows side by side", deletesBeside},
}

// anyOrder runs writers that name the same rows in opposite orders. In a store that locks
// rows in the given order, some of them would deadlock and fail.
func anyOrder(x *scratch) {
	const rows = 12
	writer := func(id int, place func(int) int) func(int) error {
		return func(round int) error {
			b := &kv.Batch{}
			for i := range rows {
				b.Set = append(b.Set, x.set(fmt.Sprintf("row-%02d", place(i)), fmt.Sprintf("%d-%d", id, round)))
			}
			if err := x.store.Commit(x.ctx, b); err != nil {
				return fmt.Errorf("commit %d of writer %d: %w", round, id, err)
			}
			return nil
		}
	}
	up, down := func(i int) int { return i }, func(i int) int { return rows - 1 - i }
	err := overlap.Run(8, writer(0, up), writer(1, down), writer(2, up), writer(3, down), writer(4, up), writer(5, down))
	x.must(err, "commit the same rows in opposite orders")
	all := x.scan(x.all(), kv.ScanOptions{})
	if len(all) != rows {
		x.failf("%d rows after the commits, want %d", len(all), rows)
	}
	for _, row := range all {
		if string(row.Value) != string(all[0].Value) {
			x.failf("rows of one batch differ: %q and %q", all[0].Value, row.Value)
		}
	}
}

// deletesBeside runs writers that set rows while another deletes the range that holds
// them. None fails, and each batch is there as a whole or not at all.
func deletesBeside(x *scratch) {
	names := []string{"b", "a", "c"}
	writer := func(id int) func(int) error {
		return func(round int) error {
			b := &kv.Batch{}
			for _, name := range names {
				b.Set = append(b.Set, x.set(name, fmt.Sprintf("%d-%d", id, round)))
			}
			return x.store.Commit(x.ctx, b)
		}
	}
	deleter := func(int) error {
		return x.store.Commit(x.ctx, &kv.Batch{DeleteRange: []kv.Range{x.all()}})
	}
	x.must(overlap.Run(8, writer(0), writer(1), deleter, func(int) error { return x.wholeBatch(names) }), "set and delete side by side")
	x.must(x.wholeBatch(names), "after all commits")
}

// wholeBatch reads rows that are always set together. Separate reads may see several
// batches, so it checks with a commit whether all of them held at one moment.
func (x *scratch) wholeBatch(names []string) error {
	check, values := &kv.Batch{}, map[string]bool{}
	for _, name := range names {
		row, err := x.store.Get(x.ctx, x.key(name))
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
		check.Expect = append(check.Expect, x.expect(name, row.Version))
		values[string(row.Value)] = true
	}
	err := x.store.Commit(x.ctx, check)
	if errors.Is(err, kv.ErrConflict) {
		return nil
	}
	if err == nil && len(values) != 1 {
		return fmt.Errorf("rows of one batch hold %d different values", len(values))
	}
	return err
}

func oneWins(x *scratch) {
	for round := range 5 {
		version := uint64(0)
		if round > 0 {
			version = x.get("a").Version
		}
		var won atomic.Int32
		var g errgroup.Group
		for i := range 16 {
			g.Go(func() error {
				mine := x.set(fmt.Sprintf("mine-%d-%d", round, i), "1")
				b := &kv.Batch{Expect: []kv.Expect{x.expect("a", version)}, Set: []kv.Set{x.set("a", strconv.Itoa(i)), mine}}
				err := x.store.Commit(x.ctx, b)
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, kv.ErrConflict) {
					return err
				}
				return nil
			})
		}
		x.must(g.Wait(), "compare and swap")
		if won.Load() != 1 {
			x.failf("%d of 16 writers won round %d", won.Load(), round)
		}
		x.want(fmt.Sprintf("mine-%d-%s", round, x.get("a").Value), "1")
		if n := len(x.scan(x.all(), kv.ScanOptions{})); n != round+2 {
			x.failf("%d rows after round %d: a loser left something behind", n, round)
		}
	}
}

func increments(x *scratch) {
	const writers, each = 8, 15
	x.put("n", "0")
	var g errgroup.Group
	for range writers {
		g.Go(func() error {
			done := 0
			// A conflict means that another writer succeeded, so this many tries
			// suffice.
			for range writers * each {
				err := x.increment("n")
				if err != nil && !errors.Is(err, kv.ErrConflict) {
					return err
				}
				if err == nil {
					done++
				}
				if done == each {
					return nil
				}
			}
			return fmt.Errorf("%d of %d increments after %d tries", done, each, writers*each)
		})
	}
	x.must(g.Wait(), "increment")
	x.want("n", strconv.Itoa(writers*each))
}

// increment adds one to a row, or returns a conflict.
func (x *scratch) increment(name string) error {
	row, err := x.store.Get(x.ctx, x.key(name))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(row.Value))
	if err != nil {
		return fmt.Errorf("parse counter: %w", err)
	}
	return x.store.Commit(x.ctx, &kv.Batch{
		Expect: []kv.Expect{x.expect(name, row.Version)},
		Set:    []kv.Set{x.set(name, strconv.Itoa(n+1))},
	})
}

// together moves a unit back and forth between two rows and checks with conditional
// reads that no commit builds on a half-moved state.
func together(x *scratch) {
	x.put("left", "10")
	x.put("right", "0")
	var g errgroup.Group
	for i := range 4 {
		g.Go(func() error {
			from, to := "left", "right"
			if i%2 == 1 {
				from, to = to, from
			}
			for range 25 {
				if err := x.move(from, to); err != nil && !errors.Is(err, kv.ErrConflict) {
					return err
				}
			}
			return nil
		})
	}
	x.must(g.Wait(), "move")
	left, _ := strconv.Atoi(string(x.get("left").Value))
	right, _ := strconv.Atoi(string(x.get("right").Value))
	if left+right != 10 || left < 0 || right < 0 {
		x.failf("left %d, right %d, want a sum of 10", left, right)
	}
}

func (x *scratch) move(from, to string) error {
	a, err := x.store.Get(x.ctx, x.key(from))
	if err != nil {
		return err
	}
	b, err := x.store.Get(x.ctx, x.key(to))
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(string(a.Value))
	m, _ := strconv.Atoi(string(b.Value))
	if n == 0 {
		return nil
	}
	return x.store.Commit(x.ctx, &kv.Batch{
		Expect: []kv.Expect{x.expect(from, a.Version), x.expect(to, b.Version)},
		Set:    []kv.Set{x.set(from, strconv.Itoa(n-1)), x.set(to, strconv.Itoa(m+1))},
	})
}

// patience is how long a hint may take before it counts as lost. A store that polls
// must be faster.
const patience = 20 * time.Second

var hints = []named{
	{"a watcher wakes when its range changes", func(x *scratch) {
		ctx, cancel := context.WithCancel(x.ctx)
		defer cancel()
		wake := x.store.Watch(ctx, kv.Range{Start: x.key("w:"), End: x.key("w;")})
		drain(wake)
		x.put("w:1", "1")
		x.awake(wake, "set")
		x.remove("w:1")
		x.awake(wake, "delete")
		x.put("w:2", "1")
		x.awake(wake, "second set")
		x.must(x.store.Commit(x.ctx, &kv.Batch{DeleteRange: []kv.Range{x.all()}}), "delete range")
		x.awake(wake, "deleted range")
	}},
	{"every watcher of a row wakes", func(x *scratch) {
		ctx, cancel := context.WithCancel(x.ctx)
		defer cancel()
		var all []<-chan struct{}
		for range 20 {
			all = append(all, x.store.Watch(ctx, x.all()))
		}
		for _, wake := range all {
			drain(wake)
		}
		x.put("a", "1")
		for _, wake := range all {
			x.awake(wake, "set")
		}
	}},
	{"an unread watcher blocks nothing", func(x *scratch) {
		ctx, cancel := context.WithCancel(x.ctx)
		defer cancel()
		x.store.Watch(ctx, x.all())
		for i := range 50 {
			x.put("a", strconv.Itoa(i))
		}
		x.want("a", "49")
	}},
	{"a watch ends with its context", func(x *scratch) {
		ctx, cancel := context.WithCancel(x.ctx)
		x.store.Watch(ctx, x.all())
		cancel()
		x.put("a", "1") // neither panics nor waits
		x.put("a", "2")
		x.want("a", "2")
	}},
}

// drain takes a spurious hint, which the contract allows.
func drain(wake <-chan struct{}) {
	select {
	case <-wake:
	default:
	}
}

func (x *scratch) awake(wake <-chan struct{}, after string) {
	select {
	case _, open := <-wake:
		if !open {
			x.failf("the watch ended before its context")
		}
	case <-time.After(patience):
		x.failf("no hint within %v after %s", patience, after)
	case <-x.ctx.Done():
		x.failf("wait for a hint: %w", x.ctx.Err())
	}
}
