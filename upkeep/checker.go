package upkeep

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/internal/abreast"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// checker compares the pointers of conversations with their histories, and visits
// every referenced blob.
type checker struct {
	*Service
	opts   *CheckOptions
	report *Report
	seen   *graph.Set
	unread bool // some row could not be read at all
	roots  []graph.Root
	there  *keySet         // rows that exist
	spans  []kv.Range      // of conversations, which are compared together
	bad    map[blob.ID]int // index into Damage

	stopped  bool      // the roots of another service are damaged
	unlisted []blob.ID // stored names of unidentifiable blobs
}

func (s *Service) newChecker(opts *CheckOptions, rows *checkedRows) *checker {
	return &checker{
		Service: s, opts: opts, report: &Report{}, seen: new(graph.Set), bad: make(map[blob.ID]int),
		there: rows.there, spans: rows.spans(), unread: slices.ContainsFunc(rows.damage, func(d Damage) bool { return !readable(d.Err) }),
	}
}

func (k *checker) check(ctx context.Context) (*Report, error) {
	for _, step := range []func(context.Context) error{k.rootRows, k.pointers, k.blobs, k.orphans, k.affected} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("check: %w", err)
		}
	}
	return k.report, nil
}

// rootRows reads the rows that name roots and remembers the roots.
func (k *checker) rootRows(ctx context.Context) error {
	for row, err := range k.conversations.RootRows(ctx) {
		if err != nil {
			if row.Key == "" {
				return err
			}
			k.badRow(row.Key, err) // and continue with the next ones
			continue
		}
		k.roots = append(k.roots, graph.Root{Kind: graph.State, ID: row.Root})
	}
	return nil
}

// readable reports whether a row could be read, even if not understood.
func readable(err error) bool {
	return errors.Is(err, kv.ErrCorrupt) || errors.Is(err, conversation.ErrNewerFormat)
}

// badRow records an unreadable row.
func (k *checker) badRow(key string, err error) {
	k.unread = k.unread || !readable(err)
	k.report.Damage = append(k.report.Damage, Damage{Kind: DamageRow, Key: key, Conversations: conversationOf(key), Err: err})
}

// readsBeside is how many reads of a check or an archiving wait at the same time. A
// database answers them in one round trip.
const readsBeside = 256

// contentsBeside is how many contents are read at the same time. Files may be large, and each
// takes its size in memory.
const contentsBeside = 16

// scansBeside is how many scans of a check run at the same time: while one waits for
// the store, the rows of another are decoded.
const scansBeside = 4

// pointers reports heads and places in lists that contradict the histories of conversations.
func (k *checker) pointers(ctx context.Context) error {
	doubtful, err := abreast.All(k.spans, scansBeside, func(in kv.Range) ([]string, error) { return k.doubtful(ctx, in) })
	if err != nil {
		return err
	}
	ids := slices.Concat(doubtful...)
	found, err := abreast.All(ids, readsBeside, func(id string) (*Damage, error) { return k.conversation(ctx, id) })
	for _, damage := range found {
		if err == nil && damage != nil {
			k.report.Damage = append(k.report.Damage, *damage)
		}
	}
	return err
}

// doubtful returns the conversations of a range whose rows do not clearly agree. Some may
// have changed meanwhile.
func (k *checker) doubtful(ctx context.Context, in kv.Range) ([]string, error) {
	all, doubtful, err := k.conversations.Pointers(ctx, in)
	for _, p := range all {
		if p.Root != p.Head || !k.there.has(keyspace.ByTime(p.Updated.UnixMilli(), p.ID)) ||
			slices.ContainsFunc(p.Filed, func(key string) bool { return !k.there.has(key) }) {
			doubtful = append(doubtful, p.ID)
		}
	}
	return doubtful, err
}

// pointerError means that two rows disagree.
type pointerError struct{ key, what string }

func (e *pointerError) Error() string { return fmt.Sprintf("row %q: %s", e.key, e.what) }

// conversation finds a head or a place in the list that contradicts the history.
func (k *checker) conversation(ctx context.Context, id string) (*Damage, error) {
	info, err := k.conversations.Get(ctx, id)
	if err != nil {
		return nil, k.ignoreReported(err)
	}
	err = k.compare(ctx, info)
	var wrong *pointerError
	if !errors.As(err, &wrong) {
		return nil, k.ignoreReported(err)
	}
	// A save between the reads changed both rows.
	if again, err := k.conversations.Get(ctx, id); err != nil || again.Save != info.Save {
		return nil, k.ignoreReported(err)
	}
	return &Damage{Kind: DamagePointer, Key: wrong.key, Conversations: []string{id}, Err: wrong}, nil
}

// compare fails with a pointerError if rows contradict the history of a conversation.
func (k *checker) compare(ctx context.Context, info conversation.Info) error {
	head, err := k.conversations.Head(ctx, info.ID)
	missing := errors.Is(err, conversation.ErrNotFound)
	switch {
	case info.Save == 0 && err == nil:
		return &pointerError{keyspace.Head(info.ID), "it has a root, but the conversation has no save"}
	case info.Save > 0 && missing:
		return &pointerError{keyspace.Head(info.ID), "it is missing"}
	case info.Save > 0 && err == nil && head != info.Root:
		return &pointerError{keyspace.Head(info.ID), fmt.Sprintf("it names %s, save %d has %s", head.Short(), info.Save, info.Root.Short())}
	case err != nil && info.Save > 0:
		return err
	}
	key := keyspace.ByTime(info.Updated.UnixMilli(), info.ID)
	if _, err := k.stores.Rows.Get(ctx, key); errors.Is(err, kv.ErrNotFound) {
		return &pointerError{key, "it is missing, so the conversation is not listed"}
	} else if err != nil {
		return err
	}
	filed, err := k.conversations.Filed(ctx, info)
	if err != nil {
		return err
	}
	for _, key := range filed {
		if ok, err := (&related{rows: k.stores.Rows}).has(ctx, key); err != nil {
			return err
		} else if !ok {
			return &pointerError{key, "it is missing, so a list by workspace or agent lacks the conversation"}
		}
	}
	return nil
}

// ignoreReported drops the error of a row that is gone, or that the scan of its own
// range reports.
func (k *checker) ignoreReported(err error) error {
	switch {
	case errors.Is(err, kv.ErrCorrupt) || errors.Is(err, conversation.ErrNewerFormat) || errors.Is(err, conversation.ErrNotFound):
		return nil
	case k.unread && !errors.Is(err, kv.ErrBusy) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		return nil // a layer below has its own errors for its rows
	}
	return err
}

// allRoots yields the roots found so far, and those of the other services without
// damaged ones: a check must not end at the first unreadable tree.
func (k *checker) allRoots(ctx context.Context) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for root, err := range graph.Roots(k.roots...) {
			if !yield(root, err) {
				return
			}
		}
		for _, roots := range k.Holders().others() {
			for root, err := range roots(ctx) {
				if isDamage(err) {
					k.stopped = true
					continue
				}
				if !yield(root, err) || err != nil {
					return
				}
			}
		}
	}
}

// blobs visits everything that is referenced. Leaves are looked up concurrently with
// the walk.
func (k *checker) blobs(ctx context.Context) error {
	look := &lookUp{blobs: k.stores.Blobs, batches: make(chan []graph.Node)}
	var work sync.WaitGroup
	work.Go(func() { look.run(ctx) })
	var leaves []graph.Node
	walk := &graph.Options{ReadLeaves: k.opts.ReadData, Seen: k.seen, Nesting: new(graph.Nesting), Workers: readsBeside}
	if k.opts.ReadData {
		walk.Workers = contentsBeside
	}
	err := graph.Walk(ctx, k.stores.Blobs, k.allRoots(ctx), walk, func(n graph.Node) error {
		k.report.Blobs++
		if k.opts.Progress != nil && k.report.Blobs%4096 == 0 {
			k.opts.Progress(k.report.Blobs)
		}
		n.Data = nil
		if n.Err != nil {
			k.damaged(n)
			return nil
		}
		if n.Kind.Leaf() && !k.opts.ReadData {
			if leaves = append(leaves, n); len(leaves) >= 1024 {
				look.batches <- leaves
				leaves = nil
			}
		}
		return nil
	})
	look.batches <- leaves
	close(look.batches)
	work.Wait()
	for _, n := range look.missing {
		k.damaged(n)
	}
	return errors.Join(err, look.err)
}

// lookUp finds the missing ones among many blobs.
type lookUp struct {
	blobs   blob.Store
	batches chan []graph.Node
	missing []graph.Node
	err     error // of the first batch that could not be looked up; the others are not
}

// run looks up batches until there are no more.
func (l *lookUp) run(ctx context.Context) {
	for nodes := range l.batches {
		if l.err != nil {
			continue
		}
		ids := make([]blob.ID, len(nodes))
		for i, n := range nodes {
			ids[i] = n.ID
		}
		var have []bool
		if have, l.err = l.blobs.Has(ctx, ids...); l.err != nil {
			continue
		}
		for i, n := range nodes {
			if !have[i] {
				n.Err = blob.NotFound(n.ID)
				l.missing = append(l.missing, n)
			}
		}
	}
}

func (k *checker) damaged(n graph.Node) {
	if _, known := k.bad[n.ID]; known {
		return
	}
	d := Damage{Kind: DamageMalformed, ID: n.ID, Field: n.Field, From: n.From, Err: n.Err}
	switch {
	case errors.Is(n.Err, blob.ErrNotFound):
		d.Kind = DamageMissing
	case errors.Is(n.Err, blob.ErrCorrupt):
		d.Kind = DamageCorrupt
	}
	k.bad[n.ID] = len(k.report.Damage)
	k.report.Damage = append(k.report.Damage, d)
}

// orphans counts unreferenced blobs.
func (k *checker) orphans(ctx context.Context) error {
	if k.stores.Inventory == nil {
		return nil
	}
	var ids []blob.ID
	err := k.stores.Inventory.List(ctx, blob.ID{}, func(i blob.Info) error {
		if !k.seen.Has(i.ID) {
			k.report.Orphans++
			k.report.OrphanBytes += i.Stored
			ids = append(ids, i.ID)
		}
		return nil
	})
	var unreadable *encrypted.UnreadableError
	if errors.As(err, &unreadable) { // a check must not end there
		k.unlisted, err = unreadable.Names, nil
	}
	if err != nil || !k.opts.ReadData {
		return err
	}
	for _, id := range ids {
		if _, err := k.stores.Blobs.Get(ctx, id); errors.Is(err, blob.ErrCorrupt) {
			k.damaged(graph.Node{Ref: graph.Ref{ID: id}, Err: err})
		} else if err != nil && !errors.Is(err, blob.ErrNotFound) {
			return err
		}
	}
	return nil
}

// affected finds the conversations from which damaged blobs are reached. It runs only
// on a damaged store.
func (k *checker) affected(ctx context.Context) error {
	if len(k.bad) == 0 {
		return nil
	}
	roots := make(map[string][]graph.Root)
	for r, err := range k.conversations.RootRows(ctx) {
		if err != nil {
			if k.ignoreReported(err) == nil {
				continue
			}
			return err
		}
		roots[r.Conversation] = append(roots[r.Conversation], graph.Root{Kind: graph.State, ID: r.Root})
	}
	for _, id := range slices.Sorted(maps.Keys(roots)) {
		err := graph.Walk(ctx, k.stores.Blobs, graph.Roots(roots[id]...), nil, func(n graph.Node) error {
			if i, bad := k.bad[n.ID]; bad {
				d := &k.report.Damage[i]
				if !slices.Contains(d.Conversations, id) {
					d.Conversations = append(d.Conversations, id)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
