package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/abreast"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/workspace"
)

// CheckOptions configure a check; nil gives the defaults.
type CheckOptions struct {
	// ReadData reads every blob, including unreferenced ones. Without it blobs
	// without references are only looked up.
	ReadData bool
	// Progress, if set, is called from time to time with the number of visited blobs.
	Progress func(blobs int64)
}

// Damage kinds.
const (
	// DamageMissing is a referenced blob that is missing.
	DamageMissing = "missing"
	// DamageCorrupt is a blob whose bytes have changed.
	DamageCorrupt = "corrupt"
	// DamageMalformed is a blob that does not match the kind of its references.
	DamageMalformed = "malformed"
	// DamageRow is a row that cannot be read.
	DamageRow = "row"
	// DamagePointer is a pointer that contradicts the history.
	DamagePointer = "pointer"
	// DamageDangling is a row without its counterpart.
	DamageDangling = "dangling"
)

// Damage is one finding.
type Damage struct {
	Kind string
	// ID is the blob, for damage of a blob.
	ID blob.ID
	// Key is the row, for damage of a row.
	Key string
	// Field and From say where a reference to a blob was first found.
	Field string
	From  blob.ID
	// Conversations are the affected conversations.
	Conversations []string
	Err           error
}

// Report is the result of a check.
type Report struct {
	// Blobs and Rows count what was checked.
	Blobs, Rows int64
	// Orphans are unreferenced blobs, and OrphanBytes their size. A collection
	// removes them; they are not damage.
	Orphans, OrphanBytes int64
	// Quarantined counts damaged rows that were set aside.
	Quarantined int64
	Damage      []Damage
}

// OK reports whether there is no damage.
func (r *Report) OK() bool { return len(r.Damage) == 0 }

// Check reads every row, compares rows that belong together, looks up every
// referenced blob, and reports what is wrong and which conversations it affects. It
// changes nothing. An error means that the check could not be finished, not that
// there is damage.
func (s *Service) Check(ctx context.Context, opts *CheckOptions) (*Report, error) {
	if opts == nil {
		opts = &CheckOptions{}
	}
	rows, err := s.checkRows(ctx)
	if err != nil {
		return nil, err
	}
	lonely, err := s.checkRelations(ctx, rows.there)
	if err != nil {
		return nil, err
	}
	k := s.newChecker(opts, rows)
	report, err := k.check(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkPacks(ctx, report, opts.ReadData); err != nil {
		return nil, err
	}
	s.addUnreadable(report, k.unlisted)
	aside, err := s.Quarantined(ctx)
	if err != nil {
		return nil, err
	}
	damagedRows := append(rows.damage, lonely...)
	report.Rows, report.Quarantined = rows.count, int64(len(aside))
	report.Damage = append(damagedRows, slices.DeleteFunc(report.Damage, func(d Damage) bool {
		return d.Kind == DamageRow && slices.ContainsFunc(damagedRows, func(r Damage) bool { return r.Key == d.Key })
	})...)
	if k.stopped || !report.OK() {
		err = s.checkTrees(ctx, report, opts.ReadData)
	}
	return report, err
}

// addUnreadable adds stored blobs that cannot be opened. Referenced ones are in the
// report already.
func (s *Service) addUnreadable(report *Report, names []blob.ID) {
	if len(names) == 0 {
		return
	}
	known := make(map[blob.ID]bool)
	for _, d := range report.Damage {
		if !d.ID.IsZero() && s.stores.Crypt != nil {
			known[s.stores.Crypt.Name(d.ID)] = true
		}
	}
	for _, name := range names {
		if !known[name] {
			err := blob.Corrupt(name, "it cannot be opened, and nothing readable refers to it")
			report.Damage = append(report.Damage, Damage{Kind: DamageCorrupt, ID: name, Err: err})
		}
	}
}

// isDamage reports whether an error is about one row, blob or tree.
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

// checkedRows is what a check learns from reading every row.
type checkedRows struct {
	count  int64
	damage []Damage
	there  *keySet  // the rows that others need
	starts []string // every so many records of conversations
}

// checkRows reads every row of the store, several ranges at a time. Rows that were set aside
// are known to be damaged and are only counted.
func (s *Service) checkRows(ctx context.Context) (*checkedRows, error) {
	there := newKeySet()
	aside := keyspace.Quarantine()
	parts, err := abreast.All(rowParts(aside), scansBeside, func(in kv.Range) (checkedRows, error) {
		if in == aside {
			return s.countRows(ctx, in)
		}
		return s.checkRowsOf(ctx, in, there)
	})
	if err != nil {
		return nil, fmt.Errorf("check rows: %w", err)
	}
	all := &checkedRows{there: there}
	for _, p := range parts {
		all.count += p.count
		all.damage = append(all.damage, p.damage...)
		all.starts = append(all.starts, p.starts...)
	}
	return all, nil
}

func (s *Service) countRows(ctx context.Context, in kv.Range) (rows checkedRows, err error) {
	for _, err := range s.stores.Rows.Scan(ctx, in, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return rows, err
		}
		rows.count++
	}
	return rows, nil
}

func (s *Service) checkRowsOf(ctx context.Context, in kv.Range, there *keySet) (rows checkedRows, err error) {
	needed, conversations := neededRows(), 0
	for row, err := range kv.Each(ctx, s.stores.Rows, in, false) {
		if err != nil && (row.Key == "" || !isDamage(err)) {
			return rows, err
		}
		if err == nil {
			err = conversation.CheckRow(row)
		}
		if err != nil {
			rows.damage = append(rows.damage, Damage{Kind: DamageRow, Key: row.Key, Conversations: conversationOf(row.Key), Err: err})
		}
		if slices.ContainsFunc(needed, func(in kv.Range) bool { return in.Contains(row.Key) }) {
			there.add(row.Key)
		}
		if keyspace.Conversations().Contains(row.Key) {
			if conversations%maxNeeded == 0 {
				rows.starts = append(rows.starts, row.Key)
			}
			conversations++
		}
		rows.count++
	}
	return rows, nil
}

// spans divides the records of conversations into ranges of equal numbers of them.
func (r *checkedRows) spans() []kv.Range {
	all := keyspace.Conversations()
	var spans []kv.Range
	for i, start := range r.starts {
		in := kv.Range{Start: start, End: all.End}
		if i == 0 {
			in.Start = all.Start
		}
		if i+1 < len(r.starts) {
			in.End = r.starts[i+1]
		}
		spans = append(spans, in)
	}
	return spans
}

// rowParts divides all keys, in order, at the beginning and end of each kind with many rows.
// The range aside is one of the parts.
func rowParts(aside kv.Range) []kv.Range {
	borders := []string{aside.Start, aside.End}
	for _, in := range append(neededRows(), keyspace.Heads(), keyspace.AllSaves()) {
		borders = append(borders, in.Start, in.End)
	}
	slices.Sort(borders)
	var parts []kv.Range
	start := ""
	for _, end := range append(slices.Compact(borders), "") {
		parts = append(parts, kv.Range{Start: start, End: end})
		start = end
	}
	return parts
}

// conversationOf returns the conversation that a row belongs to, as its key says.
func conversationOf(key string) []string {
	parts := keyspace.Parts(key)
	for _, family := range []kv.Range{keyspace.Heads(), keyspace.AllMessageHeads(), keyspace.AllSaves(), keyspace.Conversations(), keyspace.AllConversationCheckpoints()} {
		if family.Contains(key) && len(parts) > 2 {
			return []string{parts[2]}
		}
	}
	if keyspace.ByTimes().Contains(key) || keyspace.AllConversationsOf().Contains(key) {
		return []string{keyspace.Last(key)}
	}
	return nil
}
