package conversation

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stet-dev/stet/blob"
)

// draft is a root that is being changed. The order of its bytes makes a save cheap:
// lists that only grow come first, so that the next root begins with the bytes of
// this one, and everything that changes comes last. Protobuf allows fields in any
// order, and a later entry of a map overrides an earlier one, so every reader
// understands the result.
//
// It holds the maps and the small fields, but not the lists.
type draft struct {
	builder *blob.Builder
	sums    map[protowire.Number]hash.Hash         // over the records of a list in the builder
	counts  map[protowire.Number]int               // records of a list, including the held one
	held    map[protowire.Number][]byte            // the last record of an append2 field
	entries map[protowire.Number]map[string][]byte // the valid record of each key
	tail    map[protowire.Number][]byte            // all records of an inTail field
	written map[protowire.Number]int               // records of a map, including overridden ones
	dead    int64                                  // bytes of overridden entries in the builder
	rebuild bool                                   // an entry was removed, which needs a new layout

	// Additions and changes since the last save, in their current form, without forms
	// that were overwritten meanwhile.
	appended []byte
	newHeld  map[protowire.Number]bool
	newTail  map[protowire.Number]bool
	newEntry map[entryName]bool
}

type entryName struct {
	num protowire.Number
	key string
}

func newDraft(b *blob.Builder) *draft {
	return &draft{
		builder: b,
		sums:    make(map[protowire.Number]hash.Hash),
		counts:  make(map[protowire.Number]int),
		held:    make(map[protowire.Number][]byte),
		entries: make(map[protowire.Number]map[string][]byte),
		tail:    make(map[protowire.Number][]byte),
		written: make(map[protowire.Number]int),

		newHeld:  make(map[protowire.Number]bool),
		newTail:  make(map[protowire.Number]bool),
		newEntry: make(map[entryName]bool),
	}
}

// changed returns the records added or changed since the last save.
func (d *draft) changed() []byte {
	raw := bytes.Clone(d.appended)
	for num := range d.newHeld {
		raw = append(raw, d.held[num]...)
	}
	for num := range d.newTail {
		raw = append(raw, d.tail[num]...)
	}
	for name := range d.newEntry {
		raw = append(raw, d.entries[name.num][name.key]...)
	}
	return raw
}

// unchanged resets the changes.
func (d *draft) unchanged() {
	d.appended = nil
	clear(d.newHeld)
	clear(d.newTail)
	clear(d.newEntry)
}

// loadDraft continues from a stored root. If its bytes are in our order, the next
// root extends it; if another program wrote it, the next root is written as a whole
// once.
func loadDraft(id blob.ID, raw []byte) (*draft, error) {
	records, err := splitRoot(raw)
	if err != nil {
		return nil, err
	}
	cut, ours := findCut(records)
	if !ours {
		return layDraft(id, records)
	}
	prefix := 0
	for _, r := range records[:cut] {
		prefix += len(r.raw)
	}
	d := newDraft(blob.ResumeBuilder(id, raw[:prefix]))
	for i, r := range records {
		if err := d.note(r, i < cut); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// note records a record in the draft. stored means that the builder has its bytes.
func (d *draft) note(r record, stored bool) error {
	switch layoutOf(r.num) {
	case inTail:
		d.tail[r.num] = append(d.tail[r.num], r.raw...)
	case append1, append2:
		d.counts[r.num]++
		if stored {
			d.sum(r.num).Write(r.raw)
		} else {
			d.held[r.num] = bytes.Clone(r.raw)
		}
	case entries:
		return d.noteEntry(r)
	}
	return nil
}

func (d *draft) noteEntry(r record) error {
	key, err := entryKey(r.value)
	if err != nil {
		return err
	}
	if d.entries[r.num] == nil {
		d.entries[r.num] = make(map[string][]byte)
	}
	d.dead += int64(len(d.entries[r.num][key]))
	d.entries[r.num][key] = bytes.Clone(r.raw)
	d.written[r.num]++
	return nil
}

func (d *draft) sum(num protowire.Number) hash.Hash {
	if d.sums[num] == nil {
		d.sums[num] = sha256.New()
	}
	return d.sums[num]
}

// layDraft sorts records of any order into ours. like names a stored root with
// similar content, or none.
func layDraft(like blob.ID, records []record) (*draft, error) {
	b := blob.NewBuilder()
	if !like.IsZero() {
		b = blob.ResumeBuilder(like, nil)
	}
	d := newDraft(b)
	for _, r := range records {
		switch layoutOf(r.num) {
		case inTail:
			d.tail[r.num] = append(d.tail[r.num], r.raw...)
		case append1, append2:
			d.add(r.num, bytes.Clone(r.raw))
		case entries:
			if err := d.noteEntry(r); err != nil {
				return nil, err
			}
		}
	}
	for _, num := range slices.Sorted(maps.Keys(d.entries)) {
		for _, key := range slices.Sorted(maps.Keys(d.entries[num])) {
			d.builder.Append(d.entries[num][key])
		}
		d.written[num] = len(d.entries[num])
	}
	d.dead = 0
	d.unchanged()
	return d, nil
}

// add appends a record to a list.
func (d *draft) add(num protowire.Number, raw []byte) {
	d.counts[num]++
	fresh := true
	if layoutOf(num) == append2 {
		raw, d.held[num] = d.held[num], raw
		fresh, d.newHeld[num] = d.newHeld[num], true
	}
	if fresh {
		d.appended = append(d.appended, raw...)
	}
	d.builder.Append(raw)
	d.sum(num).Write(raw)
}

// hold replaces the last record of a list.
func (d *draft) hold(num protowire.Number, raw []byte) {
	if !bytes.Equal(d.held[num], raw) {
		d.held[num], d.newHeld[num] = raw, true
	}
}

// set replaces all records of a field in the tail.
func (d *draft) set(num protowire.Number, raw []byte) {
	if !bytes.Equal(d.tail[num], raw) {
		d.tail[num], d.newTail[num] = raw, true
	}
	if len(raw) == 0 {
		delete(d.tail, num)
	}
}

// put sets an entry of a map.
func (d *draft) put(num protowire.Number, key string, raw []byte) {
	if d.entries[num] == nil {
		d.entries[num] = make(map[string][]byte)
	}
	old, had := d.entries[num][key]
	if had && bytes.Equal(old, raw) {
		return
	}
	d.dead += int64(len(old))
	d.entries[num][key] = raw
	d.newEntry[entryName{num, key}] = true
	d.written[num]++
	d.builder.Append(raw)
}

// remove deletes an entry of a map.
func (d *draft) remove(num protowire.Number, key string) {
	if _, had := d.entries[num][key]; had {
		delete(d.entries[num], key)
		d.rebuild = true
	}
}

// blob returns the root as it is now.
func (d *draft) blob() blob.Blob {
	var tail []byte
	for _, num := range slices.Sorted(maps.Keys(d.tail)) {
		tail = append(tail, d.tail[num]...)
	}
	tail = append(tail, d.held[fieldTimings]...)
	tail = append(tail, d.held[fieldTurns]...)
	return d.builder.Blob(tail)
}

// stored records that a root of the draft is committed.
func (d *draft) stored(b blob.Blob) {
	d.builder.Commit(b)
	d.unchanged()
}

// minDead is how many overridden bytes a root may carry before it is rewritten.
const minDead = 64 << 10

// wasteful reports whether the root should be laid out again: half of its bytes are
// overridden, so the saves since have paid for the cost, or it has more entries than
// a reader accepts.
func (d *draft) wasteful() bool {
	for num, n := range d.written {
		if n > maxEntries && n > len(d.entries[num]) {
			return true
		}
	}
	return d.rebuild || d.dead > minDead && d.dead > d.builder.Len()/2
}

// maxEntries is how many entries of a list or a map a reader accepts.
const maxEntries = 100_000

// large reports whether a reader may reject the root, by a generous estimate of its
// parsed size: examining each record would cost as much as writing it.
func (d *draft) large() bool {
	memory := d.builder.Len()
	for _, n := range d.counts {
		if memory += 256 * int64(n); n > maxEntries {
			return true
		}
	}
	for _, n := range d.written {
		if memory += 1024 * int64(n); n > maxEntries {
			return true
		}
	}
	for _, records := range d.tail {
		memory += 64 * int64(len(records))
	}
	return memory > 32<<20
}

func (d *draft) turns() uint64 { return uint64(d.counts[fieldTurns] + d.counts[fieldOldTurns]) }

// live drops removed entries from the records of a whole root. It keeps everything
// else in order.
func (d *draft) live(records []record) ([]record, error) {
	kept := records[:0]
	for _, r := range records {
		if layoutOf(r.num) == entries {
			key, err := entryKey(r.value)
			if err != nil {
				return nil, fmt.Errorf("lay out root: %w", err)
			}
			if !bytes.Equal(d.entries[r.num][key], r.raw) {
				continue
			}
		}
		kept = append(kept, r)
	}
	return kept, nil
}
