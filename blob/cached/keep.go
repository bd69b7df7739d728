package cached

import (
	"container/list"
	"time"

	"github.com/stet-dev/stet/blob"
)

// lru holds the most recently used contents, up to a number of bytes. The caller
// locks.
type lru struct {
	max, size int64
	order     *list.List // of *item, most recently used first
	items     map[blob.ID]*list.Element
}

type item struct {
	id   blob.ID
	data []byte
}

// overhead is the approximate cost of an item besides its content, so that a cache
// full of tiny blobs also stays within its limit.
const overhead = 200

func (i *item) cost() int64 { return int64(len(i.data)) + overhead }

func newLRU(maxBytes int64) *lru {
	return &lru{max: maxBytes, order: list.New(), items: make(map[blob.ID]*list.Element)}
}

func (l *lru) get(id blob.ID) ([]byte, bool) {
	e, ok := l.items[id]
	if !ok {
		return nil, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*item).data, true
}

// touch reports whether id is cached, and makes it the most recently used.
func (l *lru) touch(id blob.ID) bool {
	_, ok := l.get(id)
	return ok
}

// add takes ownership of data and returns how many others were evicted.
func (l *lru) add(id blob.ID, data []byte) (evicted int) {
	if l.touch(id) {
		return 0
	}
	it := &item{id: id, data: data}
	l.items[id] = l.order.PushFront(it)
	l.size += it.cost()
	for l.size > l.max {
		l.remove(l.order.Back().Value.(*item).id)
		evicted++
	}
	return evicted
}

func (l *lru) remove(id blob.ID) {
	e, ok := l.items[id]
	if !ok {
		return
	}
	l.size -= l.order.Remove(e).(*item).cost()
	delete(l.items, id)
}

func (l *lru) clear() { *l = *newLRU(l.max) }

// absentees are ids that the inner store recently did not have. The caller locks.
type absentees struct {
	max   int
	keep  time.Duration
	until map[blob.ID]time.Time
}

func (a *absentees) has(id blob.ID) bool {
	until, ok := a.until[id]
	if ok && !time.Now().Before(until) {
		delete(a.until, id)
		return false
	}
	return ok
}

func (a *absentees) add(id blob.ID) {
	if a.max <= 0 {
		return
	}
	if a.until == nil {
		a.until = make(map[blob.ID]time.Time)
	}
	for other := range a.until { // any will do: it is only looked up again
		if len(a.until) < a.max {
			break
		}
		delete(a.until, other)
	}
	a.until[id] = time.Now().Add(a.keep)
}

func (a *absentees) remove(id blob.ID) { delete(a.until, id) }
