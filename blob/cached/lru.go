package cached

import (
	"container/list"
	"time"

	"github.com/stet-dev/stet/blob"
)

// lru holds the contents used last, up to a number of bytes. Its user locks.
type lru struct {
	max, size int64
	order     *list.List // of *item, the one used last in front
	items     map[blob.ID]*list.Element
}

type item struct {
	id   blob.ID
	data []byte
}

// overhead is about what an item costs beside its content, so that a cache full
// of tiny blobs stays within its bound too.
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

// touch reports whether id is here, and makes it the one used last.
func (l *lru) touch(id blob.ID) bool {
	_, ok := l.get(id)
	return ok
}

// add keeps data, which is the cache's from now on, and returns how many others
// had to go.
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

// absentees are ids that the inner store did not have a moment ago. Its user
// locks.
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
	for other := range a.until { // any will do: it is only asked for again
		if len(a.until) < a.max {
			break
		}
		delete(a.until, other)
	}
	a.until[id] = time.Now().Add(a.keep)
}

func (a *absentees) remove(id blob.ID) { delete(a.until, id) }
