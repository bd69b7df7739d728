package conversation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// CheckOptions shape a check; nil gives the defaults.
type CheckOptions struct {
	// ReadData reads every blob that is referred to. Without it blobs that refer
	// to nothing are only looked up.
	ReadData bool
	// Extra gives the roots of other packages.
	Extra []Roots
	// Lister, if set, is used to count blobs that nothing refers to. With
	// ReadData those are read, too.
	Lister blob.Lister
	// Progress, if set, is told now and then how many blobs were visited.
	Progress func(blobs int64)
}

// Damage kinds.
const (
	// DamageMissing is a blob that is referred to and not there.
	DamageMissing = "missing"
	// DamageCorrupt is a blob whose bytes are not the ones that were written.
	DamageCorrupt = "corrupt"
	// DamageMalformed is a blob that is not what those who refer to it say.
	DamageMalformed = "malformed"
	// DamageRow is a row that cannot be read.
	DamageRow = "row"
	// DamagePointer is a pointer that contradicts the history.
	DamagePointer = "pointer"
	// DamageDangling is a row without another one that belongs to it.
	DamageDangling = "dangling"
)

// Damage is something that is wrong.
type Damage struct {
	Kind string
	// ID is the blob, for damage of a blob.
	ID blob.ID
	// Key is the row, for damage of a row.
	Key string
	// Field and From tell where a blob was first found to be referred to.
	Field string
	From  blob.ID
	// Conversations are those that are affected.
	Conversations []string
	Err           error
}

// Report is the result of a check.
type Report struct {
	// Blobs and Rows count what was looked at.
	Blobs, Rows int64
	// Orphans are blobs that nothing refers to, and OrphanBytes what they take. A
	// collection removes them; they are no damage.
	Orphans, OrphanBytes int64
	// Quarantined counts damaged rows that were set aside.
	Quarantined int64
	Damage      []Damage
}

// OK reports whether nothing is wrong.
func (r *Report) OK() bool { return len(r.Damage) == 0 }

// Check looks whether rows can be read, pointers and history agree, and every
// blob that is referred to is there. It changes nothing. An error means that the
// check could not be finished, not that there is damage.
func (s *Store) Check(ctx context.Context, opts *CheckOptions) (*Report, error) {
	if opts == nil {
		opts = &CheckOptions{}
	}
	k := &checker{store: s, opts: opts, report: &Report{}, seen: new(graph.Set), bad: make(map[blob.ID]int)}
	for _, step := range []func(context.Context) error{k.rows, k.blobs, k.orphans, k.affected} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("check: %w", err)
		}
	}
	return k.report, nil
}

type checker struct {
	store  *Store
	opts   *CheckOptions
	report *Report
	seen   *graph.Set
	unread bool // some row could not be read at all
	roots  []graph.Root
	bad    map[blob.ID]int // index into Damage
	leaves []graph.Node    // to be looked up
}

// rows reads all our rows and remembers the roots.
func (k *checker) rows(ctx context.Context) error {
	for _, table := range rootRows() {
		err := k.scan(ctx, table.rows, func(row kv.Row) (string, error) {
			id, conversation, err := table.decode(row)
			if err == nil {
				k.roots = append(k.roots, graph.Root{Kind: graph.State, ID: id})
			}
			return conversation, err
		})
		if err != nil {
			return err
		}
	}
	err := k.scan(ctx, keyspace.ByTimes(), func(row kv.Row) (string, error) { return keyspace.Last(row.Key), checkByTime(row) })
	if err != nil {
		return err
	}
	return k.scan(ctx, keyspace.Conversations(), func(row kv.Row) (string, error) {
		rec, err := decodeConversation(row)
		if err != nil {
			return keyspace.Last(row.Key), err
		}
		return rec.Id, k.conversation(ctx, rec)
	})
}

// scan reads the rows of a range; those that read refuses are damage.
func (k *checker) scan(ctx context.Context, r kv.Range, read func(kv.Row) (string, error)) error {
	for row, err := range kv.Each(ctx, k.store.rows, r, false) {
		if err != nil && row.Key == "" {
			return err
		}
		k.report.Rows++
		if err != nil { // and those after it are still to be looked at
			k.unread = true
			k.report.Damage = append(k.report.Damage, Damage{Kind: DamageRow, Key: row.Key, Conversations: conversationsOf(row.Key), Err: err})
			continue
		}
		conversation, err := read(row)
		var wrong *pointerError
		switch {
		case err == nil:
		case errors.As(err, &wrong):
			k.report.Damage = append(k.report.Damage, Damage{Kind: DamagePointer, Key: wrong.key, Conversations: []string{conversation}, Err: err})
		case errors.Is(err, kv.ErrCorrupt) || errors.Is(err, ErrNewerFormat):
			k.report.Damage = append(k.report.Damage, Damage{Kind: DamageRow, Key: row.Key, Conversations: []string{conversation}, Err: err})
		default:
			return err
		}
	}
	return nil
}

// conversationsOf tells from a key that cannot be read whom it affects.
func conversationsOf(key string) []string {
	switch {
	case keyspace.Pins().Contains(key):
		return nil // its value says so
	case keyspace.ByTimes().Contains(key):
		return []string{keyspace.Last(key)}
	}
	return []string{keyspace.Parts(key)[2]}
}

// pointerError says that two rows disagree.
type pointerError struct{ key, what string }

func (e *pointerError) Error() string { return fmt.Sprintf("row %q: %s", e.key, e.what) }

// conversation compares the head and the place in the list with the history.
func (k *checker) conversation(ctx context.Context, rec *stetv1.ConversationRecord) error {
	last, err := k.store.lastSave(ctx, rec.Id)
	if err != nil {
		return k.ignoreReported(err)
	}
	if last.Seq == 0 {
		if _, err := k.store.Head(ctx, rec.Id); err == nil {
			if again, err := k.store.lastSave(ctx, rec.Id); err != nil || again.Seq > 0 {
				return k.ignoreReported(err) // the first save came between
			}
			return &pointerError{keyspace.Head(rec.Id), "it has a root, and the conversation has no save"}
		}
	}
	listed := rec.CreatedAtMs
	if last.Seq > 0 {
		listed = last.Time.UnixMilli()
		head, err := k.store.Head(ctx, rec.Id)
		switch {
		case errors.Is(err, ErrNotFound):
			return &pointerError{keyspace.Head(rec.Id), "it is missing"}
		case err != nil:
			return k.ignoreReported(err)
		case head != last.Root:
			return &pointerError{keyspace.Head(rec.Id), fmt.Sprintf("it names %s, save %d has %s", head.Short(), last.Seq, last.Root.Short())}
		}
	}
	key := keyspace.ByTime(listed, rec.Id)
	if _, err := k.store.rows.Get(ctx, key); errors.Is(err, kv.ErrNotFound) {
		// A save that came between the two reads moved it.
		if again, err := k.store.lastSave(ctx, rec.Id); err != nil || again.Seq != last.Seq {
			return k.ignoreReported(err)
		}
		return &pointerError{key, "it is missing, so that the conversation is not listed"}
	} else if err != nil {
		return k.ignoreReported(err)
	}
	return nil
}

// ignoreReported drops the error of a row that the scan of its own range
// reports.
func (k *checker) ignoreReported(err error) error {
	switch {
	case errors.Is(err, kv.ErrCorrupt) || errors.Is(err, ErrNewerFormat):
		return nil
	case k.unread && !errors.Is(err, kv.ErrBusy) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		return nil // a layer below has errors of its own for its rows
	}
	return err
}

// blobs visits everything that is referred to.
func (k *checker) blobs(ctx context.Context) error {
	all := withExtra(ctx, k.roots, k.opts.Extra)
	walk := &graph.Options{ReadLeaves: k.opts.ReadData, Seen: k.seen, Nesting: new(graph.Nesting)}
	err := graph.Walk(ctx, k.store.blobs, all, walk, func(n graph.Node) error {
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
			k.leaves = append(k.leaves, n)
			if len(k.leaves) >= 1024 {
				return k.lookUp(ctx)
			}
		}
		return nil
	})
	return errors.Join(err, k.lookUp(ctx))
}

func (k *checker) lookUp(ctx context.Context) error {
	ids := make([]blob.ID, len(k.leaves))
	for i, n := range k.leaves {
		ids[i] = n.ID
	}
	have, err := k.store.blobs.Has(ctx, ids...)
	if err != nil {
		return err
	}
	for i, n := range k.leaves {
		if !have[i] {
			n.Err = blob.NotFound(n.ID)
			k.damaged(n)
		}
	}
	k.leaves = k.leaves[:0]
	return nil
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

// orphans counts what nothing refers to.
func (k *checker) orphans(ctx context.Context) error {
	if k.opts.Lister == nil {
		return nil
	}
	var ids []blob.ID
	err := k.opts.Lister.List(ctx, blob.ID{}, func(i blob.Info) error {
		if !k.seen.Has(i.ID) {
			k.report.Orphans++
			k.report.OrphanBytes += i.Stored
			ids = append(ids, i.ID)
		}
		return nil
	})
	if err != nil || !k.opts.ReadData {
		return err
	}
	for _, id := range ids {
		if _, err := k.store.blobs.Get(ctx, id); errors.Is(err, blob.ErrCorrupt) {
			k.damaged(graph.Node{Ref: graph.Ref{ID: id}, Err: err})
		} else if err != nil && !errors.Is(err, blob.ErrNotFound) {
			return err
		}
	}
	return nil
}

// affected finds the conversations from which damaged blobs are reached. Only a
// damaged store pays for it.
func (k *checker) affected(ctx context.Context) error {
	if len(k.bad) == 0 {
		return nil
	}
	roots := make(map[string][]graph.Root)
	for r, err := range k.store.namedRoots(ctx) {
		if err != nil {
			if k.ignoreReported(err) == nil {
				continue
			}
			return err
		}
		roots[r.conversation] = append(roots[r.conversation], graph.Root{Kind: graph.State, ID: r.root})
	}
	for _, id := range slices.Sorted(maps.Keys(roots)) {
		err := graph.Walk(ctx, k.store.blobs, graph.Roots(roots[id]...), nil, func(n graph.Node) error {
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
