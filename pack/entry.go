package pack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// state is the state of a row of the catalog.
type state byte

const (
	// archiving is a note that a copy is running. A writer that changes the
	// conversation removes it.
	archiving state = 1
	// archived means that rows and blobs are in the objects.
	archived state = 2
)

// object is an object of a pack.
type object struct {
	key       string
	size, end int64 // end is the length of index and tail
}

// entry is the row of the catalog for one conversation.
type entry struct {
	id      string
	state   state
	time    time.Time
	objects []object
	rows    uint64
	blobs   uint64
	// shadows is how many rows stay in the database under another key.
	shadows uint64
	// hot are the rows that lists of conversations need: the head and the last save.
	hot    []kv.Row
	filter filter

	version uint64 // of the row, when it was read
}

func (e *entry) key() string { return keyspace.Pack(e.id) }

// size is what the objects take.
func (e *entry) size() (n int64) {
	for _, o := range e.objects {
		n += o.size
	}
	return n
}

func (e *entry) objectKeys() []string {
	keys := make([]string, len(e.objects))
	for i, o := range e.objects {
		keys[i] = o.key
	}
	return keys
}

// hotRow returns a row that needs no object.
func (e *entry) hotRow(key string) (kv.Row, bool) {
	for _, row := range e.hot {
		if row.Key == key {
			row.Value = bytes.Clone(row.Value)
			return row, true
		}
	}
	return kv.Row{}, false
}

// hotIn returns the last row of a range that needs no object, or one without a key.
func (e *entry) hotIn(in kv.Range) kv.Row {
	for _, row := range e.hot { // each is the last of its kind
		if in.Contains(row.Key) {
			row.Value = bytes.Clone(row.Value)
			return row
		}
	}
	return kv.Row{}
}

// encode returns the value of the row. Its sum covers the key, so that a value moved
// to another row is detected.
func (e *entry) encode() []byte {
	out := []byte{version, byte(e.state)}
	out = binary.AppendUvarint(out, uint64(max(0, e.time.UnixMilli())))
	out = binary.AppendUvarint(out, uint64(len(e.objects)))
	for _, o := range e.objects {
		out = appendBytes(out, o.key)
		out = binary.AppendUvarint(out, uint64(o.size))
		out = binary.AppendUvarint(out, uint64(o.end))
	}
	for _, n := range []uint64{e.rows, e.blobs, e.shadows, uint64(len(e.hot))} {
		out = binary.AppendUvarint(out, n)
	}
	for _, row := range e.hot {
		out = appendBytes(out, row.Key)
		out = binary.AppendUvarint(out, row.Version)
		out = appendBytes(out, row.Value)
	}
	return sign(e.key(), appendBytes(out, e.filter))
}

// sign appends the sum of a value.
func sign(key string, value []byte) []byte {
	s := sumOf(append(appendBytes(nil, key), value...))
	return append(value, s[:]...)
}

// verify checks the sum of a value and removes it. It does so before anything else,
// so that a changed bit is not mistaken for another format; later formats end in the
// sum, too.
func verify(key string, value []byte) ([]byte, error) {
	if len(value) < 1+sumSize {
		return nil, fmt.Errorf("%w: row %q has %d bytes", kv.ErrCorrupt, key, len(value))
	}
	body := value[:len(value)-sumSize]
	if s := sumOf(append(appendBytes(nil, key), body...)); !bytes.Equal(s[:], value[len(body):]) || value[0] == 0 {
		return nil, fmt.Errorf("%w: row %q has a wrong checksum", kv.ErrCorrupt, key)
	}
	if value[0] > version {
		return nil, fmt.Errorf("%w: row %q has %d; this release reads %d", ErrNewerFormat, key, value[0], version)
	}
	return body[1:], nil
}

func decodeEntry(row kv.Row) (*entry, error) {
	body, err := verify(row.Key, row.Value)
	if err != nil {
		return nil, err
	}
	p := &parser{rest: body}
	e := &entry{id: keyspace.Last(row.Key), version: row.Version}
	if s := p.take(1); len(s) == 1 {
		e.state = state(s[0])
	}
	e.time = time.UnixMilli(int64(min(p.number(), math.MaxInt64/2)))
	e.objects = make([]object, p.count(3))
	for i := range e.objects {
		o := object{key: string(p.bytes()), size: int64(min(p.number(), math.MaxInt64)), end: int64(min(p.number(), math.MaxInt64))}
		if o.end < int64(tailSize) || o.end > maxIndex+int64(tailSize) || o.size < o.end+int64(headSize) {
			p.fail("object %d of %d bytes with an index of %d", i, o.size, o.end)
		}
		e.objects[i] = o
	}
	e.rows, e.blobs, e.shadows = p.number(), p.number(), p.number()
	e.hot = make([]kv.Row, p.count(3))
	for i := range e.hot {
		e.hot[i] = kv.Row{Key: string(p.bytes()), Version: p.number(), Value: bytes.Clone(p.bytes())}
	}
	e.filter = bytes.Clone(p.bytes())
	if p.err == nil && (len(p.rest) > 0 || e.state != archiving && e.state != archived || e.state == archived && len(e.objects) == 0) {
		p.fail("state %d with %d objects, %d bytes too many", e.state, len(e.objects), len(p.rest))
	}
	if p.err != nil {
		return nil, fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, p.err)
	}
	return e, nil
}

// shadow is a row that stays in the database under another key, where lists find it
// but a collector does not.
type shadow struct {
	conversation string
	row          kv.Row // as it was: key, version and value
}

func (s *shadow) set() kv.Set {
	key := keyspace.Packed(s.row.Key)
	out := appendBytes([]byte{version}, s.conversation)
	out = binary.AppendUvarint(out, s.row.Version)
	return kv.Set{Key: key, Value: sign(key, append(out, s.row.Value...))}
}

func decodeShadow(row kv.Row) (*shadow, error) {
	body, err := verify(row.Key, row.Value)
	if err != nil {
		return nil, err
	}
	p := &parser{rest: body}
	s := &shadow{conversation: string(p.bytes())}
	s.row = kv.Row{Key: keyspace.Unpacked(row.Key), Version: p.number(), Value: bytes.Clone(p.rest)}
	if p.err == nil && (s.conversation == "" || s.row.Version == 0) {
		p.fail("it is empty")
	}
	if p.err != nil {
		return nil, fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, p.err)
	}
	return s, nil
}
