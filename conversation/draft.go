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
	"github.com/stet-dev/stet/conversation/wirelimit"
)

// Field numbers of ConversationStateStructure that the layout of a root or a
// setter names.
const (
	fieldPrompt    protowire.Number = 1
	fieldOldTurns  protowire.Number = 2
	fieldTodos     protowire.Number = 3
	fieldSummary   protowire.Number = 6
	fieldPlan      protowire.Number = 7
	fieldTurns     protowire.Number = 8
	fieldOldFiles  protowire.Number = 12
	fieldArchives  protowire.Number = 13
	fieldTimings   protowire.Number = 14
	fieldFiles     protowire.Number = 15
	fieldReadPaths protowire.Number = 18
	fieldUpdates   protowire.Number = 23
	fieldSubagents protowire.Number = 31
)

// layout says where the records of a field are kept in a root.
type layout uint8

const (
	inTail  layout = iota // small and changing: written anew with every root
	append1               // only ever grows at its end
	append2               // grows, and its last record still changes: that one is in the tail
	entries               // a map, whose later records overrule earlier ones
)

func layoutOf(num protowire.Number) layout {
	switch num {
	case fieldPrompt, fieldOldTurns, fieldArchives, fieldReadPaths, fieldUpdates:
		return append1
	case fieldTurns, fieldTimings:
		return append2
	case fieldOldFiles, fieldFiles, 16, 20, 24, 29, 30, fieldSubagents:
		return entries
	}
	return inTail
}

// draft is a root that is being changed. The order of its bytes is what makes a
// save cheap: records that only ever grow come first, so that the next root
// begins with the bytes of this one, and everything that changes comes last.
// Protobuf lets fields stand in any order, and lets a later entry of a map
// overrule an earlier one, so that every reader understands the result.
//
// It holds the maps and the small fields, not the lists, however long they are.
type draft struct {
	builder *blob.Builder
	sums    map[protowire.Number]hash.Hash         // over the records of a list in the builder
	counts  map[protowire.Number]int               // records of a list, the held back one included
	held    map[protowire.Number][]byte            // the last record of an append2 field
	entries map[protowire.Number]map[string][]byte // the record of each key that counts
	tail    map[protowire.Number][]byte            // all records of an inTail field
	dead    int64                                  // bytes of overruled entries in the builder
	rebuild bool                                   // an entry was removed: only a new layout can say so

	// What came or changed since the last save, as it is now: forms that were
	// overwritten before anyone saw them are not part of it.
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

		newHeld:  make(map[protowire.Number]bool),
		newTail:  make(map[protowire.Number]bool),
		newEntry: make(map[entryName]bool),
	}
}

// changed returns the records that came or changed since the last save.
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

// unchanged forgets what changed.
func (d *draft) unchanged() {
	d.appended = nil
	clear(d.newHeld)
	clear(d.newTail)
	clear(d.newEntry)
}

// record is one field of a root on the wire.
type record struct {
	num   protowire.Number
	raw   []byte // tag and value
	value []byte // content, where it has a length
}

// regular returns the number under which a record is kept. A list or a map whose
// record has another wire type than it must have is, to every parser, a field
// that it does not know; a number of its own keeps it apart and in the tail.
func regular(num protowire.Number, typ protowire.Type) protowire.Number {
	if typ != protowire.BytesType && layoutOf(num) != inTail {
		return -num
	}
	return num
}

// eachRecord calls fn with the number and the bytes of each record of a root.
func eachRecord(raw []byte, fn func(protowire.Number, []byte)) error {
	for len(raw) > 0 {
		num, typ, _, rest, err := wirelimit.Next(raw)
		if err != nil {
			return invalid("split root: %v", err)
		}
		fn(regular(num, typ), raw[:len(raw)-len(rest)])
		raw = rest
	}
	return nil
}

// splitRoot splits a root into its records, which share its memory.
func splitRoot(raw []byte) ([]record, error) {
	records := make([]record, 0, len(raw)/34+8)
	for len(raw) > 0 {
		num, typ, value, rest, err := wirelimit.Next(raw)
		if err != nil {
			return nil, invalid("split root: %v", err)
		}
		records = append(records, record{num: regular(num, typ), raw: raw[:len(raw)-len(rest)], value: value})
		raw = rest
	}
	return records, nil
}

// entryKey returns the key of a map's record. All maps of a root have text keys.
func entryKey(entry []byte) (string, error) {
	var key []byte
	for len(entry) > 0 {
		num, typ, value, rest, err := wirelimit.Next(entry)
		if err != nil {
			return "", invalid("read map entry: %v", err)
		}
		if num == 1 && typ == protowire.BytesType {
			key = value
		}
		entry = rest
	}
	return string(key), nil
}

// loadDraft continues from a stored root. If its bytes are in our order the next
// root extends it; if another program wrote it, the next root is written whole,
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

// findCut returns the number of records with which the next root can begin, and
// whether the remaining ones are the tail that we would have written.
func findCut(records []record) (cut int, ours bool) {
	last := map[protowire.Number]int{fieldTurns: -1, fieldTimings: -1}
	for i, r := range records {
		if layoutOf(r.num) == append2 {
			last[r.num] = i
		}
	}
	for cut < len(records) {
		num := records[cut].num
		if layoutOf(num) == inTail || last[num] == cut && layoutOf(num) == append2 {
			break
		}
		cut++
	}
	for i := cut; i < len(records); i++ {
		num := records[i].num
		if l := layoutOf(num); l != inTail && (l != append2 || last[num] != i) {
			return cut, false
		}
	}
	return cut, true
}

// note takes a record into the draft's books. stored says that the builder has
// its bytes.
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
	return nil
}

func (d *draft) sum(num protowire.Number) hash.Hash {
	if d.sums[num] == nil {
		d.sums[num] = sha256.New()
	}
	return d.sums[num]
}

// layDraft brings records, which may come in any order, into ours. like names a
// stored root with similar content, or none.
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

// stored tells the draft that a root it made is committed.
func (d *draft) stored(b blob.Blob) {
	d.builder.Commit(b)
	d.unchanged()
}

// minDead is how many overruled bytes a root carries before it is written anew.
const minDead = 64 << 10

// wasteful reports whether the root must, or should, be laid out again. Half of
// the bytes are overruled then, so that the cost is paid for by the saves since.
func (d *draft) wasteful() bool {
	return d.rebuild || d.dead > minDead && d.dead > d.builder.Len()/2
}

func (d *draft) turns() uint64 { return uint64(d.counts[fieldTurns] + d.counts[fieldOldTurns]) }

// live drops the records of a whole root that a draft no longer counts: entries
// that were removed. It keeps everything else in order.
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
