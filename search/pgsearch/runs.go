package pgsearch

import (
	"encoding/binary"
	"math"

	"github.com/stet-dev/stet/search/internal/corpus"
	"github.com/stet-dev/stet/transcript"
)

// runSize is how many messages a run can have. The number of a message is that of its
// run times runSize plus its place in it, so that the run is known without a look-up.
const runSize = 64

// doc is a message in the index, without its text.
type doc struct {
	section [8]byte // a part of the SHA-256 of the name of its section
	digest  [8]byte // of the message
	place   int     // in the section
	turn    int
	id      string
	role    transcript.Role
	kind    transcript.Kind
	tool    string
	time    int64
	sub     string
	save    uint64
	weight  float64
	length  int
	gone    bool // removed; the place stays, because others are counted from it
}

// run is some messages of a conversation that were indexed together.
type run struct {
	num  int64
	conv []byte
	docs []doc
}

func (r *run) live() (n int) {
	for i := range r.docs {
		if !r.docs[i].gone {
			n++
		}
	}
	return n
}

// encode writes the messages. A removed one is one byte.
func (r *run) encode() []byte {
	var b []byte
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	for i := range r.docs {
		d := &r.docs[i]
		if d.gone {
			b = append(b, 0)
			continue
		}
		b = append(b, 1)
		b = append(append(b, d.section[:]...), d.digest[:]...)
		for _, n := range []uint64{uint64(d.place), uint64(d.turn), uint64(d.time), d.save, uint64(d.length), uint64(math.Round(d.weight * 1000))} {
			b = binary.AppendUvarint(b, n)
		}
		for _, s := range []string{d.id, string(d.role), string(d.kind), d.tool, d.sub} {
			text(s)
		}
	}
	return compress(b)
}

func decodeRun(num int64, conv, data []byte) (*run, error) {
	b, err := decompress(data)
	if err != nil {
		return nil, err
	}
	// A message has about 32 bytes or more, and all share the memory of their texts.
	r, all := &run{num: num, conv: conv, docs: make([]doc, 0, min(runSize, len(b)/32+1))}, string(b)
	bad := false
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			bad, b = true, nil
			return 0
		}
		b = b[n:]
		return v
	}
	text := func() string {
		n := number()
		if uint64(len(b)) < n {
			bad, b = true, nil
			return ""
		}
		at := len(all) - len(b)
		b = b[n:]
		return all[at : at+int(n)]
	}
	for len(b) > 0 && !bad {
		d := doc{gone: b[0] == 0}
		b = b[1:]
		if !d.gone {
			if len(b) < 16 {
				return nil, errDamaged
			}
			copy(d.section[:], b)
			copy(d.digest[:], b[8:])
			b = b[16:]
			d.place, d.turn, d.time, d.save, d.length = int(number()), int(number()), int64(number()), number(), int(number())
			d.weight = float64(number()) / 1000
			d.id, d.role, d.kind, d.tool, d.sub = text(), transcript.Role(text()), transcript.Kind(text()), text(), text()
		}
		r.docs = append(r.docs, d)
	}
	if bad || len(r.docs) > runSize {
		return nil, errDamaged
	}
	return r, nil
}

// newDoc is the part of a message that is kept.
func newDoc(d *corpus.Doc, section [8]byte, place int, save uint64) doc {
	out := doc{
		section: section, place: place, turn: d.Turn, id: d.ID, role: d.Role, kind: d.Kind, tool: d.Tool,
		time: d.Time, sub: d.Subagent, save: save, weight: d.Weight(save),
	}
	copy(out.digest[:], d.Digest)
	return out
}

// sectionKey is the part of a section's name that is kept.
func sectionKey(name string) (k [8]byte) {
	copy(k[:], key(name))
	return k
}

// sections are the digests of the sections of a conversation, by their keys.
type sections map[[8]byte][8]byte

func (s sections) encode() []byte {
	b := make([]byte, 0, 16*len(s))
	for k, d := range s {
		b = append(append(b, k[:]...), d[:]...)
	}
	return b
}

func decodeSections(b []byte) (sections, error) {
	if len(b)%16 != 0 {
		return nil, errDamaged
	}
	s := make(sections, len(b)/16)
	for ; len(b) > 0; b = b[16:] {
		s[[8]byte(b[:8])] = [8]byte(b[8:16])
	}
	return s, nil
}
