package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Repairer replaces whatever a store holds under the id of a blob. As with Replacer,
// readers get the old bytes or the new ones, whole.
type Repairer interface {
	// Repair stores a whole blob in place of the stored one. If none is stored, it does
	// nothing.
	Repair(ctx context.Context, b Blob) error
	// RepairFrom stores size bytes of r in place of the stored blob. If none is stored,
	// the error wraps ErrNotFound.
	RepairFrom(ctx context.Context, id ID, r io.Reader, size int64) error
}

// Repairing is Checked for a store whose damaged blobs can be exchanged. After Get or
// Open has returned ErrCorrupt for a blob, the next Put or PutFrom of that blob stores it
// again. Put itself does not look for damage: reading every blob that is already stored
// would make storing it again as costly as reading it.
func Repairing(inner Store, r Repairer) Store {
	return &checked{inner: inner, repairer: r}
}

// ByReplacing repairs blobs of a store that keeps contents as they are.
func ByReplacing(r Replacer) Repairer { return byReplacing{r} }

type byReplacing struct{ r Replacer }

func (b byReplacing) Repair(ctx context.Context, one Blob) error {
	return b.r.Replace(ctx, Blob{ID: one.ID, Data: one.Data, LocalOnly: one.LocalOnly})
}

func (b byReplacing) RepairFrom(ctx context.Context, id ID, r io.Reader, size int64) error {
	return b.r.ReplaceFrom(ctx, id, r, size)
}

// maxDamaged is how many damaged blobs are remembered. The next read notices the damage
// of a forgotten one again.
const maxDamaged = 4096

// damage is the set of blobs that were found damaged.
type damage struct {
	mu  sync.Mutex // guards ids
	ids map[ID]struct{}
}

func (d *damage) add(id ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ids == nil || len(d.ids) >= maxDamaged {
		d.ids = make(map[ID]struct{})
	}
	d.ids[id] = struct{}{}
}

func (d *damage) has(id ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.ids[id]
	return ok
}

func (d *damage) remove(id ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.ids, id)
}

// note remembers a blob that was found damaged, if it can be repaired.
func (c *checked) note(id ID, err error) {
	if c.repairer != nil && errors.Is(err, ErrCorrupt) {
		c.damaged.add(id)
	}
}

// repair exchanges those of the verified blobs that were found damaged.
func (c *checked) repair(ctx context.Context, blobs []Blob) error {
	for i := range blobs {
		id := blobs[i].ID
		if c.repairer == nil || !c.damaged.has(id) {
			continue
		}
		whole, err := Whole(ctx, c.inner, blobs[i])
		if err == nil && blobs[i].Keep > 0 {
			err = verifySum(id, whole.Data) // what it extends may be damaged too
		}
		if err == nil {
			err = c.repairer.Repair(ctx, whole)
		}
		if errors.Is(err, ErrReadOnly) {
			continue // a read-only store may still take blobs into memory
		}
		if err != nil {
			return fmt.Errorf("repair blob %s: %w", id, err)
		}
		c.damaged.remove(id)
	}
	return nil
}

// repairFrom exchanges a blob that was found damaged. It reports whether the blob is
// stored. A blob that the store below does not hold by itself, for example one in a pack,
// is put as usual, for which the source is read again.
func (c *checked) repairFrom(ctx context.Context, id ID, source io.Reader, size int64, rewind func() error) (done bool, err error) {
	if c.repairer == nil || !c.damaged.has(id) {
		return false, nil
	}
	err = c.repairer.RepairFrom(ctx, id, source, size)
	if err == nil {
		c.damaged.remove(id)
		return true, nil
	}
	if rewind != nil && errors.Is(err, ErrNotFound) {
		c.damaged.remove(id)
		return false, rewind()
	}
	return false, fmt.Errorf("repair blob %s: %w", id, err)
}
