package conversation

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stet-dev/stet/conversation/wirelimit"
)

// Field numbers of ConversationStateStructure used by the layout of a root or a
// setter.
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

// layout is the place of a field's records in a root.
type layout uint8

const (
	inTail  layout = iota // small and changing: rewritten with every root
	append1               // only grows at its end
	append2               // grows, and its last record, kept in the tail, may change
	entries               // a map; later records override earlier ones
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

// record is one field of a root on the wire.
type record struct {
	num   protowire.Number
	raw   []byte // tag and value
	value []byte // content of a length-delimited field
}

// regular returns the number under which a record is kept. A record of a list or map
// with the wrong wire type is an unknown field to every parser; a separate number
// keeps it in the tail.
func regular(num protowire.Number, typ protowire.Type) protowire.Number {
	if typ != protowire.BytesType && layoutOf(num) != inTail {
		return -num
	}
	return num
}

// eachRecord calls fn with the number and the bytes of each record of a root.
func eachRecord(raw []byte, fn func(protowire.Number, []byte)) error {
	for len(raw) > 0 {
		if n := shortRecord(raw); n > 0 {
			fn(protowire.Number(raw[0]>>3), raw[:n])
			raw = raw[n:]
			continue
		}
		num, typ, _, rest, err := wirelimit.Next(raw)
		if err != nil {
			return invalid("split root: %v", err)
		}
		fn(regular(num, typ), raw[:len(raw)-len(rest)])
		raw = rest
	}
	return nil
}

// shortRecord returns the length of a record whose tag and length are one byte each,
// or 0. Nearly all records of a long root are, and skipping ten thousand turns is
// most of the cost of reading the last ten.
func shortRecord(raw []byte) int {
	if len(raw) < 2 || raw[0]&7 != byte(protowire.BytesType) || raw[0] < 1<<3 || raw[0] >= 0x80 || raw[1] >= 0x80 {
		return 0
	}
	if n := 2 + int(raw[1]); n <= len(raw) {
		return n
	}
	return 0
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

// findCut returns how many records the next root can begin with, and whether the
// remaining ones are a tail in our form.
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
