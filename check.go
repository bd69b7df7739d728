package stet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/workspace"
)

// Check looks at every row and every blob that is referred to, and tells what is
// wrong and which conversations it affects.
func (db *DB) Check(ctx context.Context, opts *conversation.CheckOptions) (*conversation.Report, error) {
	all := conversation.CheckOptions{}
	if opts != nil {
		all = *opts
	}
	stopped := false
	for _, roots := range db.roots() {
		all.Extra = append(all.Extra, forgiving(roots, &stopped))
	}
	listed := &readable{Lister: all.Lister}
	if listed.Lister == nil && db.inventory != nil {
		listed.Lister = db.inventory
	}
	if listed.Lister != nil {
		all.Lister = listed
	}
	rows, damagedRows, err := db.checkRows(ctx)
	if err != nil {
		return nil, err
	}
	lonely, err := db.checkRelations(ctx)
	if err != nil {
		return nil, err
	}
	damagedRows = append(damagedRows, lonely...)
	report, err := db.conversations.Check(ctx, &all)
	if err != nil {
		return nil, err
	}
	if err := db.checkPacks(ctx, report, all.ReadData); err != nil {
		return nil, err
	}
	db.addUnreadable(report, listed.names)
	aside, err := db.Quarantined(ctx)
	if err != nil {
		return nil, err
	}
	report.Rows, report.Quarantined = rows, int64(len(aside))
	report.Damage = append(damagedRows, slices.DeleteFunc(report.Damage, func(d conversation.Damage) bool {
		return d.Kind == conversation.DamageRow && slices.ContainsFunc(damagedRows, func(r conversation.Damage) bool { return r.Key == d.Key })
	})...)
	if stopped || !report.OK() {
		err = db.checkTrees(ctx, report, all.ReadData)
	}
	return report, err
}

// readable lists the blobs that can be listed, and remembers the stored names of
// those that do not say what they are: a check must not end with them.
type readable struct {
	blob.Lister
	names []blob.ID
}

// List implements blob.Lister.
func (r *readable) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	err := r.Lister.List(ctx, after, fn)
	var unreadable *encrypted.UnreadableError
	if errors.As(err, &unreadable) {
		r.names = unreadable.Names
		return nil
	}
	return err
}

// addUnreadable adds stored blobs that do not open. Those that something refers to
// are in the report already.
func (db *DB) addUnreadable(report *conversation.Report, names []blob.ID) {
	if len(names) == 0 {
		return
	}
	known := make(map[blob.ID]bool)
	for _, d := range report.Damage {
		if !d.ID.IsZero() && db.crypt != nil {
			known[db.crypt.Name(d.ID)] = true
		}
	}
	for _, name := range names {
		if !known[name] {
			err := blob.Corrupt(name, "it is stored under this name, does not open, and nothing that can be read refers to it")
			report.Damage = append(report.Damage, conversation.Damage{Kind: conversation.DamageCorrupt, ID: name, Err: err})
		}
	}
}

// forgiving passes over what is damaged and remembers that there was something:
// a check must not end at the first tree that cannot be read.
func forgiving(roots conversation.Roots, stopped *bool) conversation.Roots {
	return func(ctx context.Context) iter.Seq2[graph.Root, error] {
		return func(yield func(graph.Root, error) bool) {
			for root, err := range roots(ctx) {
				if isDamage(err) {
					*stopped = true
					continue
				}
				if !yield(root, err) {
					return
				}
			}
		}
	}
}

func isDamage(err error) bool {
	for _, damage := range []error{
		blob.ErrNotFound, blob.ErrCorrupt, kv.ErrCorrupt, sealed.ErrUnknownEnvelope, workspace.ErrBadNode, checkpoint.ErrBadRecord,
	} {
		if errors.Is(err, damage) {
			return true
		}
	}
	return false
}

// checkRows reads every row of the store by itself, since a scan ends at the
// first that is damaged.
func (db *DB) checkRows(ctx context.Context) (int64, []conversation.Damage, error) {
	var rows int64
	var damage []conversation.Damage
	for row, err := range db.rows.Scan(ctx, kv.Range{}, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return rows, nil, fmt.Errorf("check rows: %w", err)
		}
		if rows++; keyspace.Quarantine().Contains(row.Key) {
			continue // known to be damaged, and out of the way
		}
		_, err := db.rows.Get(ctx, row.Key)
		switch {
		case err == nil || errors.Is(err, kv.ErrNotFound): // gone since the scan began
		case isDamage(err):
			damage = append(damage, conversation.Damage{
				Kind: conversation.DamageRow, Key: row.Key, Conversations: conversationOf(row.Key), Err: err,
			})
		default:
			return rows, nil, fmt.Errorf("check rows: %w", err)
		}
	}
	return rows, damage, nil
}

// conversationOf tells from a key which conversation its row is part of.
func conversationOf(key string) []string {
	parts := keyspace.Parts(key)
	for _, family := range []kv.Range{keyspace.Heads(), keyspace.AllMessageHeads(), keyspace.AllSaves(), keyspace.Conversations(), keyspace.AllConversationCheckpoints()} {
		if family.Contains(key) && len(parts) > 2 {
			return []string{parts[2]}
		}
	}
	if keyspace.ByTimes().Contains(key) {
		return []string{keyspace.Last(key)}
	}
	return nil
}

// checkTrees finds what is wrong with the trees of checkpoints. Only a damaged
// store pays for it.
func (db *DB) checkTrees(ctx context.Context, report *conversation.Report, readData bool) error {
	for row, err := range db.rows.Scan(ctx, keyspace.Checkpoints(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return fmt.Errorf("check checkpoints: %w", err)
		}
		rec, err := db.Checkpoints().Get(ctx, keyspace.Last(row.Key))
		if isDamage(err) || errors.Is(err, checkpoint.ErrNotFound) {
			continue // reported with the rows
		}
		if err != nil {
			return fmt.Errorf("check checkpoints: %w", err)
		}
		problems, err := workspace.Verify(ctx, db.blobs, rec.Tree, readData)
		if err != nil {
			return fmt.Errorf("check checkpoint %s: %w", rec.ID, err)
		}
		for _, p := range problems {
			addTreeDamage(report, rec, p)
		}
	}
	return nil
}

func addTreeDamage(report *conversation.Report, rec *checkpoint.Record, p workspace.Problem) {
	at := slices.IndexFunc(report.Damage, func(d conversation.Damage) bool { return d.ID == p.ID })
	if at < 0 {
		d := conversation.Damage{Kind: conversation.DamageMalformed, ID: p.ID, From: rec.Tree, Err: p.Err}
		switch {
		case errors.Is(p.Err, blob.ErrNotFound):
			d.Kind = conversation.DamageMissing
		case errors.Is(p.Err, blob.ErrCorrupt):
			d.Kind = conversation.DamageCorrupt
		}
		at = len(report.Damage)
		report.Damage = append(report.Damage, d)
	}
	d := &report.Damage[at]
	d.Field = cmp.Or(d.Field, fmt.Sprintf("%q in checkpoint %s", p.Path, rec.ID))
	if rec.Conversation != "" && !slices.Contains(d.Conversations, rec.Conversation) {
		d.Conversations = append(d.Conversations, rec.Conversation)
	}
}
