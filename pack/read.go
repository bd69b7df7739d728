package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
)

// blockSize is how much of an object is read at once. Records that are read in
// sequence are stored in sequence, so a block serves many.
const blockSize = 1 << 20

type blockKey struct {
	object string
	number int64
}

// errGone means that an object has disappeared: the conversation was brought back or
// removed since the catalog was read.
var errGone = fault.New(fault.Stale, "object of a pack is gone")

// contents is the content of all objects of a pack.
type contents struct {
	rows  []placedRow // by key
	blobs map[blob.ID]placedBlob
	order []blob.ID // of blobs, as stored
}

type placedRow struct {
	rowItem
	object int
}

type placedBlob struct {
	blobItem
	object int
}

// row returns the row of a key.
func (c *contents) row(key string) (placedRow, bool) {
	i, ok := slices.BinarySearchFunc(c.rows, key, func(r placedRow, key string) int { return strings.Compare(r.key, key) })
	if !ok {
		return placedRow{}, false
	}
	return c.rows[i], true
}

// within returns the rows of a range.
func (c *contents) within(r kv.Range) []placedRow {
	at := func(key string) int {
		i, _ := slices.BinarySearchFunc(c.rows, key, func(r placedRow, key string) int { return strings.Compare(r.key, key) })
		return i
	}
	lo, hi := at(r.Start), len(c.rows)
	if r.End != "" {
		hi = at(r.End)
	}
	if hi < lo {
		return nil
	}
	return c.rows[lo:hi]
}

// contents returns the content of a pack, from memory if it was read recently.
func (s *Store) contents(ctx context.Context, e *entry) (*contents, error) {
	s.mu.Lock()
	c, ok := s.loaded.Get(e.objects[0].key)
	s.mu.Unlock()
	if ok {
		return c, nil
	}
	c = &contents{blobs: make(map[blob.ID]placedBlob)}
	weight := int64(0)
	for i, o := range e.objects {
		read := s.readRange
		if o.size <= wholeBytes { // what it holds will be read next
			read = func(ctx context.Context, _ string, _, _ int64) ([]byte, error) { return s.block(ctx, o, 0) }
		}
		x, err := s.readIndex(ctx, o, read)
		if err != nil {
			return nil, fmt.Errorf("read index of the packs of %s: %w", e.id, err)
		}
		for _, r := range x.rows {
			c.rows = append(c.rows, placedRow{r, i})
			weight += int64(len(r.key)) + 96
		}
		slices.SortFunc(x.blobs, func(a, b blobItem) int { return int(a.offset - b.offset) })
		for _, b := range x.blobs {
			c.blobs[b.name] = placedBlob{b, i}
			c.order = append(c.order, b.name)
			weight += 240
		}
	}
	if !slices.IsSortedFunc(c.rows, func(a, b placedRow) int { return strings.Compare(a.key, b.key) }) {
		return nil, fmt.Errorf("read index of the packs of %s: %w", e.id, damaged("its objects do not fit together"))
	}
	s.keep(e, c, weight)
	return c, nil
}

func (s *Store) keep(e *entry, c *contents, weight int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded.Add(e.objects[0].key, c, weight)
}

// wholeBytes is the size up to which an object is read as a whole for its index: one
// request takes longer than its bytes.
const wholeBytes = 128 << 10

// readIndex reads the head and the end of an object.
func (s *Store) readIndex(ctx context.Context, o object, read func(ctx context.Context, key string, offset, length int64) ([]byte, error)) (*index, error) {
	first := int64(headSize)
	if o.size <= wholeBytes {
		first = o.size
	}
	head, err := read(ctx, o.key, 0, first)
	if err != nil {
		return nil, err
	}
	if err := checkHead(head[:headSize]); err != nil {
		return nil, fmt.Errorf("object %s: %w", o.key, err)
	}
	var end []byte
	if first == o.size {
		end = head[o.size-o.end:]
	} else if end, err = read(ctx, o.key, o.size-o.end, o.end); err != nil {
		return nil, err
	}
	x, err := parseEnd(end, o.size)
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", o.key, err)
	}
	return x, nil
}

// readRange reads a part of an object.
func (s *Store) readRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	r, err := s.objects.OpenObject(ctx, key, offset, length)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", errGone, key)
	}
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", key, err)
	}
	data, err := blob.ReadExactly(r, length)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read object %s: %w", key, err)
	}
	return data, nil
}

// read returns a record. The slice belongs to the caller.
func (s *Store) read(ctx context.Context, o object, at extent) ([]byte, error) {
	if err := blob.Reserve(ctx, at.length); err != nil {
		return nil, err
	}
	var data []byte
	var err error
	if at.length > blockSize {
		data, err = s.readRange(ctx, o.key, at.offset, at.length)
	} else {
		data, err = s.readBlocks(ctx, o, at)
	}
	if err != nil {
		return nil, err
	}
	if sumOf(data) != at.sum {
		return nil, fmt.Errorf("object %s: %w", o.key, damaged("record at %d has a wrong checksum", at.offset))
	}
	return data, nil
}

func (s *Store) readBlocks(ctx context.Context, o object, at extent) ([]byte, error) {
	out := make([]byte, 0, at.length)
	for pos := at.offset; pos < at.offset+at.length; {
		n := pos / blockSize
		block, err := s.block(ctx, o, n)
		if err != nil {
			return nil, err
		}
		part := block[pos-n*blockSize:]
		part = part[:min(int64(len(part)), at.offset+at.length-pos)]
		out, pos = append(out, part...), pos+int64(len(part))
	}
	return out, nil
}

// block returns a block of an object, which is shared and must not be changed.
func (s *Store) block(ctx context.Context, o object, n int64) ([]byte, error) {
	key := blockKey{o.key, n}
	s.mu.Lock()
	block, ok := s.blocks.Get(key)
	s.mu.Unlock()
	if ok {
		return block, nil
	}
	block, err := s.readRange(ctx, o.key, n*blockSize, min(blockSize, o.size-n*blockSize))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocks.Add(key, block, int64(len(block)))
	return block, nil
}

// openRecord streams a record that is too large to be held.
func (s *Store) openRecord(ctx context.Context, o object, at extent) (io.ReadCloser, error) {
	r, err := s.objects.OpenObject(ctx, o.key, at.offset, at.length)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", errGone, o.key)
	}
	return r, err
}

// gone explains a missing object: nil if the catalog has changed and the caller
// should try again, or damage.
func (s *Store) gone(ctx context.Context, e *entry, cause error) error {
	s.forget(e)
	now, err := s.entry(ctx, e.id)
	if err != nil {
		return err
	}
	if now != nil && now.version == e.version {
		return fmt.Errorf("packs of %s: %w: %v", e.id, damaged("an object is missing"), cause)
	}
	return nil
}

// find returns the recently read pack that holds a blob, or nil. It fails if a pack
// that may hold it cannot be read.
func (s *Store) find(ctx context.Context, name blob.ID) (*entry, placedBlob, error) {
	s.mu.Lock()
	recent := s.recent.Values()
	s.mu.Unlock()
	var broken error
	for _, e := range recent {
		if !e.filter.may(name) {
			continue
		}
		c, err := s.contents(ctx, e)
		if errors.Is(err, errGone) {
			if err = s.gone(ctx, e, err); err == nil {
				return s.find(ctx, name) // with the current catalog
			}
		}
		if errors.Is(err, ErrDamaged) { // another pack may have the blob
			broken = err
			continue
		}
		if err != nil {
			return nil, placedBlob{}, err
		}
		if b, ok := c.blobs[name]; ok {
			return e, b, nil
		}
	}
	return nil, placedBlob{}, broken
}
