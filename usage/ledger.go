package usage

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
)

// ledger has a line for each blob: its size, and the kinds it was met as. The listed
// blobs are a sorted list, not a map, since that takes half the memory. It is safe
// for concurrent use.
type ledger struct {
	listed bool  // the store enumerates its blobs
	deltas int64 // how many of them lean on another

	mu     sync.Mutex // guards what follows, but not ids, which stays as it is
	ids    []blob.ID  // of the listed blobs, in order
	stored []int64    // their sizes
	others map[blob.ID]int
	marks  []mark  // by line
	totals []int64 // by line: a blob and all below it, in full; only used by a history
	// What was met before the current epoch is forgotten. nil until there is a second.
	epochs []uint32
	epoch  uint32
}

// mark records as what a blob was met: a bit for each kind whose references differ.
type mark uint32

const (
	leafMark mark = 1
	// The kinds of package graph that refer to others have the bits from 1 to 20.
	directoryMark mark = 1 << 29
	chunkedMark   mark = 1 << 30
	countedMark   mark = 1 << 31
)

// inventory opens a ledger of what is stored. Blobs that cannot be listed are damage.
func (s *Store) inventory(ctx context.Context) (book *ledger, damage, err error) {
	book = &ledger{listed: s.Lister != nil, others: make(map[blob.ID]int)}
	if !book.listed {
		return book, nil, nil
	}
	err = s.Lister.List(ctx, blob.ID{}, func(info blob.Info) error {
		if n := len(book.ids); n > 0 && book.ids[n-1].Compare(info.ID) >= 0 {
			return fmt.Errorf("the store lists blob %s after %s", info.ID, book.ids[n-1])
		}
		book.ids, book.stored = append(book.ids, info.ID), append(book.stored, info.Stored)
		if !info.Base.IsZero() {
			book.deltas++
		}
		return ctx.Err()
	})
	if ctx.Err() == nil && conversation.Damaged(err) {
		damage, err = err, nil // the others were listed
	}
	book.marks, book.totals = make([]mark, len(book.ids)), make([]int64, len(book.ids))
	return book, damage, err
}

// find returns the line of a listed blob.
func (l *ledger) find(id blob.ID) (int, bool) {
	return slices.BinarySearchFunc(l.ids, id, blob.ID.Compare)
}

// size returns the stored size of a listed blob.
func (l *ledger) size(id blob.ID) (int64, bool) {
	if i, ok := l.find(id); ok {
		return l.stored[i], true
	}
	return 0, false
}

// lineLocked returns the line of any blob. One that is not listed gets a line when it
// is met: it came later, is in a pack, or is lost.
func (l *ledger) lineLocked(id blob.ID) int {
	i, ok := l.find(id)
	if !ok {
		if i, ok = l.others[id]; !ok {
			i = len(l.marks)
			l.others[id] = i
			l.marks, l.totals = append(l.marks, 0), append(l.totals, 0)
		}
	}
	if l.epoch == 0 {
		return i
	}
	if i >= len(l.epochs) {
		l.epochs = append(l.epochs, make([]uint32, len(l.marks)-len(l.epochs))...)
	}
	if l.epochs[i] != l.epoch {
		l.marks[i], l.epochs[i] = 0, l.epoch
	}
	return i
}

// Add implements graph.Marks.
func (l *ledger) Add(id blob.ID, kind graph.Kind) bool { return l.meet(id, markOf(kind)) }

func markOf(kind graph.Kind) mark {
	if kind.Leaf() {
		return leafMark
	}
	return leafMark << (1 + kind - graph.State)
}

// meet reports whether a blob is met as this for the first time.
func (l *ledger) meet(id blob.ID, as mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.lineLocked(id)
	before := l.marks[i]
	l.marks[i] |= as
	return before&as == 0
}

// count reports what a blob adds to what is stored: it does so once, and nothing if
// the store lists its blobs and this is not one of them. full is its own size.
func (l *ledger) count(id blob.ID, full int64) (bytes int64, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.lineLocked(id)
	if l.marks[i]&countedMark != 0 || l.listed && i >= len(l.ids) {
		return 0, false
	}
	l.marks[i] |= countedMark
	if l.listed {
		full = l.stored[i]
	}
	return full, true
}

func (l *ledger) total(id blob.ID) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.totals[l.lineLocked(id)]
}

func (l *ledger) setTotal(id blob.ID, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals[l.lineLocked(id)] = bytes
}

// all sums up what is listed.
func (l *ledger) all() (sum Count) {
	for _, bytes := range l.stored {
		sum.add(bytes)
	}
	return sum
}

// uncounted sums up what is listed and was not counted.
func (l *ledger) uncounted() (sum Count) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, bytes := range l.stored {
		if l.marks[i]&countedMark == 0 {
			sum.add(bytes)
		}
	}
	return sum
}

// begin forgets what was met, without visiting every line.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch++
}
