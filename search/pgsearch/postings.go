package pgsearch

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/stet-dev/stet/fault"
)

// errDamaged says that a row of the index is not what was written. The index can be
// rebuilt.
var errDamaged = fault.New(fault.Damaged, "the search index is damaged; rebuild it")

// posting is the places of a word in a message.
type posting struct {
	doc int64
	places
}

// places are those of a word in the body and in the path of a message. Only the lowest
// byte of each is kept, unless the body is long: a phrase that these places suggest is
// compared with the text.
type places struct {
	body, path []uint32
	wide       bool // places of the body are whole, and in order
}

// longBody is the number of words from which places are kept whole.
const longBody = 512

// maxPlaces limits the places of a word in a message. The rest is not kept: a phrase is
// then looked for in the text.
const maxPlaces = 4096

// list is a part of the postings of a word, encoded. Each begins with the distance to the
// message before, at first to the start of the segment, times two. A word that occurs
// once in the body follows as a byte. For all others 1 is added, and the number of places
// in the body follows, times four, plus 2 if the places are whole and 1 if there are
// places in the path; then the places, as bytes or as distances; then the number of places
// in the path, and those.
type list struct {
	last int64
	data []byte
}

func (l *list) add(p posting) {
	step := uint64(p.doc-l.last) << 1
	l.last = p.doc
	if len(p.body) == 1 && len(p.path) == 0 && !p.wide {
		l.data = append(binary.AppendUvarint(l.data, step), byte(p.body[0]))
		return
	}
	l.data = binary.AppendUvarint(l.data, step|1)
	count := uint64(len(p.body)) << 2
	if p.wide {
		count |= 2
	}
	if len(p.path) > 0 {
		count |= 1
	}
	l.data = binary.AppendUvarint(l.data, count)
	before := uint32(0)
	for _, at := range p.body {
		if p.wide {
			l.data = binary.AppendUvarint(l.data, uint64(at-before))
			before = at
		} else {
			l.data = append(l.data, byte(at))
		}
	}
	if len(p.path) > 0 {
		l.data = binary.AppendUvarint(l.data, uint64(len(p.path)))
		for _, at := range p.path {
			l.data = append(l.data, byte(at))
		}
	}
}

// lists are the postings of a word in a segment.
type lists struct{ parts []list }

func (l *lists) add(start int64, p posting) {
	if n := len(l.parts); n == 0 || len(l.parts[n-1].data) >= maxList {
		l.parts = append(l.parts, list{last: start})
	}
	l.parts[len(l.parts)-1].add(p)
}

// reader reads numbers; bad is set if there is none.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

// bytes appends the next n bytes as places.
func (r *reader) bytes(to []uint32, n uint64) []uint32 {
	if n > uint64(len(r.data)) {
		r.bad, r.data = true, nil
		return to
	}
	for _, b := range r.data[:n] {
		to = append(to, uint32(b))
	}
	r.data = r.data[n:]
	return to
}

// decodeList calls fn for each posting of a part; it must not keep the places.
func decodeList(data []byte, start int64, fn func(posting)) error {
	p, r := posting{doc: start}, &reader{data: data}
	for len(r.data) > 0 {
		step := r.number()
		p.doc += int64(step >> 1)
		p.body, p.path, p.wide = p.body[:0], p.path[:0], false
		if step&1 == 0 {
			p.body = r.bytes(p.body, 1)
		} else {
			count := r.number()
			p.wide = count&2 != 0
			if count>>2 > maxPlaces {
				return errDamaged
			}
			if p.wide {
				at := uint32(0)
				for range count >> 2 {
					at += uint32(r.number())
					p.body = append(p.body, at)
				}
			} else {
				p.body = r.bytes(p.body, count>>2)
			}
			if count&1 != 0 {
				p.path = r.bytes(p.path, r.number())
			}
		}
		if r.bad {
			return errDamaged
		}
		fn(p)
	}
	return nil
}

// entry is a key with a list, in a block.
type entry struct {
	key  wordKey
	data []byte
}

// Blocks are closed at blockSize, and lists are split at maxList, so that a search reads
// little for a word and merging needs little memory.
const (
	blockSize = 32 << 10
	maxList   = 64 << 10
)

// block is some entries in the order of their keys, as a row.
type block struct {
	first wordKey
	data  []byte
}

// The faster levels of the encoder look for repetitions only, find next to none in
// postings, and leave them as they are; this one also codes frequent bytes shorter.
var codec = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	dec, err2 := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil || err2 != nil {
		panic("zstd refuses its options")
	}
	return enc, dec
})

func compress(data []byte) []byte {
	enc, _ := codec()
	return enc.EncodeAll(data, nil)
}

func decompress(data []byte) ([]byte, error) {
	_, dec := codec()
	out, err := dec.DecodeAll(data, nil)
	if err != nil {
		return nil, errDamaged
	}
	return out, nil
}

// blocks makes blocks of entries that come in order.
type blocks struct {
	emit func(block) error
	raw  []byte
	open bool
	head wordKey
	last wordKey
}

// add appends an entry. Its key is written without the bytes that it has in common with
// the one before: their number times 16, plus that of the others, and the others.
func (b *blocks) add(e entry) error {
	if !b.open {
		b.open, b.head, b.last = true, e.key, wordKey{}
	}
	same := byte(0)
	for same < min(b.last.size, e.key.size) && b.last.bytes[same] == e.key.bytes[same] {
		same++
	}
	b.raw = append(b.raw, same<<4|e.key.size-same)
	b.raw = append(b.raw, e.key.bytes[same:e.key.size]...)
	b.raw = binary.AppendUvarint(b.raw, uint64(len(e.data)))
	b.raw = append(b.raw, e.data...)
	b.last = e.key
	if len(b.raw) < blockSize {
		return nil
	}
	return b.end()
}

func (b *blocks) end() error {
	if !b.open {
		return nil
	}
	err := b.emit(block{b.head, compress(b.raw)})
	b.open, b.raw = false, b.raw[:0]
	return err
}

// decodeBlock returns the entries of a block.
func decodeBlock(data []byte) ([]entry, error) {
	raw, err := decompress(data)
	if err != nil {
		return nil, err
	}
	var all []entry
	var key wordKey
	for len(raw) > 0 {
		same, more := raw[0]>>4, raw[0]&15
		if same > key.size || same+more > maxKey || len(raw) < 1+int(more) {
			return nil, errDamaged
		}
		key.size = same
		key.add(raw[1 : 1+more]...)
		clear(key.bytes[key.size:])
		raw = raw[1+more:]
		size, n := binary.Uvarint(raw)
		if n <= 0 || uint64(len(raw)-n) < size {
			return nil, errDamaged
		}
		all = append(all, entry{key, raw[n : n+int(size)]})
		raw = raw[n+int(size):]
	}
	return all, nil
}

// builder collects the words of messages for a new segment. Messages come in the order
// of their numbers.
type builder struct {
	salt        []byte
	keys        map[string]wordKey
	lists       map[wordKey]*lists
	docs        int
	start, last int64
	bytes       int // of the texts

	words map[wordKey]*places // of the message being added
	spare []*places           // to use again
}

func newBuilder(salt []byte) *builder {
	return &builder{salt: salt, keys: make(map[string]wordKey), lists: make(map[wordKey]*lists), words: make(map[wordKey]*places)}
}

// add adds a message, and returns its number of words.
func (b *builder) add(doc int64, body, path string) (length int) {
	if b.docs == 0 {
		b.start = doc
	}
	b.docs, b.last = b.docs+1, doc
	b.bytes += len(body) + len(path)
	inBody := b.note(body, func(p *places) *[]uint32 { return &p.body })
	length = inBody + b.note(path, func(p *places) *[]uint32 { return &p.path })
	for key, p := range b.words {
		l := b.lists[key]
		if l == nil {
			l = &lists{}
			b.lists[key] = l
		}
		p.wide = inBody > longBody
		l.add(b.start, posting{doc, *p})
		b.spare = append(b.spare, p)
	}
	clear(b.words)
	return length
}

func (b *builder) note(text string, in func(*places) *[]uint32) (n int) {
	for t := range tokens(text) {
		key, known := b.keys[t.word]
		if !known {
			key = keyOf(b.salt, t.word)
			b.keys[t.word] = key
		}
		p := b.words[key]
		if p == nil {
			if last := len(b.spare) - 1; last >= 0 {
				p, b.spare = b.spare[last], b.spare[:last]
				p.body, p.path = p.body[:0], p.path[:0]
			} else {
				p = &places{}
			}
			b.words[key] = p
		}
		if list := in(p); len(*list) < maxPlaces {
			*list = append(*list, uint32(n))
		}
		n++
	}
	return n
}

// write makes the blocks.
func (b *builder) write(emit func(block) error) error {
	all := make([]wordKey, 0, len(b.lists))
	for k := range b.lists {
		all = append(all, k)
	}
	slices.SortFunc(all, wordKey.compare)
	out := &blocks{emit: emit}
	for _, k := range all {
		for _, part := range b.lists[k].parts {
			if err := out.add(entry{k, part.data}); err != nil {
				return err
			}
		}
	}
	return out.end()
}
