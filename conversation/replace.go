package conversation

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stet-dev/stet/blob"
)

// grouped is a root by field.
type grouped map[protowire.Number][]record

func group(records []record) grouped {
	g := make(grouped)
	for _, r := range records {
		g[r.num] = append(g[r.num], r)
	}
	return g
}

// joined returns the records of a field, concatenated.
func (g grouped) joined(num protowire.Number) []byte {
	var raw []byte
	for _, r := range g[num] {
		raw = append(raw, r.raw...)
	}
	return raw
}

// replace makes the draft equal to the records. If the new state continues the old
// one, as after a turn, the draft grows; otherwise a new one is laid out, to be
// stored like the root with the given id.
func (d *draft) replace(like blob.ID, records []record) (*draft, error) {
	g := group(records)
	last, err := lastEntries(g)
	if err != nil {
		return nil, err
	}
	if d.continuedBy(g, last) {
		d.follow(g, last)
		return d, nil
	}
	next, err := layDraft(like, records)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		next.appended = append(next.appended, r.raw...)
	}
	return next, nil
}

// lastEntries returns the valid entry for each key of each map.
func lastEntries(g grouped) (map[protowire.Number]map[string][]byte, error) {
	all := make(map[protowire.Number]map[string][]byte)
	for num, records := range g {
		if layoutOf(num) != entries {
			continue
		}
		all[num] = make(map[string][]byte, len(records))
		for _, r := range records {
			key, err := entryKey(r.value)
			if err != nil {
				return nil, err
			}
			all[num][key] = r.raw
		}
	}
	return all, nil
}

// continuedBy reports whether a state can be reached by appending.
func (d *draft) continuedBy(g grouped, last map[protowire.Number]map[string][]byte) bool {
	for num, count := range d.counts {
		inBuilder := count
		if layoutOf(num) == append2 {
			inBuilder--
		}
		if len(g[num]) < count {
			return false
		}
		sum := sha256.New()
		for _, r := range g[num][:inBuilder] {
			sum.Write(r.raw)
		}
		if !bytes.Equal(sum.Sum(nil), d.sum(num).Sum(nil)) {
			return false
		}
	}
	for num, have := range d.entries {
		for key := range have {
			if _, ok := last[num][key]; !ok {
				return false
			}
		}
	}
	return true
}

// follow appends what a state has beyond the draft. continuedBy must hold.
func (d *draft) follow(g grouped, last map[protowire.Number]map[string][]byte) {
	for num := range d.tail {
		if len(g[num]) == 0 {
			d.set(num, nil)
		}
	}
	// In order, so that equal histories give equal roots.
	for _, num := range slices.Sorted(maps.Keys(g)) {
		records := g[num]
		switch layoutOf(num) {
		case inTail:
			d.set(num, g.joined(num))
		case append1:
			for _, r := range records[d.counts[num]:] {
				d.add(num, bytes.Clone(r.raw))
			}
		case append2:
			if n := d.counts[num]; n > 0 {
				d.hold(num, bytes.Clone(records[n-1].raw))
			}
			for _, r := range records[d.counts[num]:] {
				d.add(num, bytes.Clone(r.raw))
			}
		case entries:
			for _, key := range slices.Sorted(maps.Keys(last[num])) {
				d.put(num, key, bytes.Clone(last[num][key]))
			}
		}
	}
}
