package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
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
	there := newKeySet()
	rows, damagedRows, err := s.checkRows(ctx, there)
	if err != nil {
		return nil, err
	}
	lonely, err := s.checkRelations(ctx, there)
	if err != nil {
		return nil, err
	}
	damagedRows = append(damagedRows, lonely...)
	k := s.newChecker(opts)
	k.there = there
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
	report.Rows, report.Quarantined = rows, int64(len(aside))
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

// checkRows reads every row of the store, several ranges at a time, and remembers the keys
// that other rows need. Rows that were set aside are known to be damaged, and only counted.
func (s *Service) checkRows(ctx context.Context, there *keySet) (int64, []Damage, error) {
	type part struct {
		rows   int64
		damage []Damage
	}
	aside, needed := keyspace.Quarantine(), neededRows()
	parts, err := abreast.All(rowParts(aside), scansBeside, func(in kv.Range) (part, error) {
		var p part
		if in == aside {
			for _, err := range s.stores.Rows.Scan(ctx, aside, kv.ScanOptions{KeysOnly: true}) {
				if err != nil {
					return p, err
				}
				p.rows++
			}
			return p, nil
		}
		for row, err := range kv.Each(ctx, s.stores.Rows, in, false) {
			switch {
			case err == nil:
			case row.Key != "" && isDamage(err):
				p.damage = append(p.damage, Damage{
					Kind: DamageRow, Key: row.Key, Conversations: conversationOf(row.Key), Err: err,
				})
			default:
				return p, err
			}
			if slices.ContainsFunc(needed, func(in kv.Range) bool { return in.Contains(row.Key) }) {
				there.add(row.Key)
			}
			p.rows++
		}
		return p, nil
	})
	if err != nil {
		return 0, nil, fmt.Errorf("check rows: %w", err)
	}
	var rows int64
	var damage []Damage
	for _, p := range parts {
		rows, damage = rows+p.rows, append(damage, p.damage...)
	}
	return rows, damage, nil
}

// rowParts divides all keys, in their order, where a kind begins or ends that has many rows.
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
