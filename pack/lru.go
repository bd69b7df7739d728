package pack

import "container/list"

// lru keeps the most recently used values up to a total weight. The caller locks.
type lru[K comparable, V any] struct {
	limit, weight int64
	order         *list.List // of *kept[K, V], most recently used first
	at            map[K]*list.Element
}

type kept[K comparable, V any] struct {
	key    K
	value  V
	weight int64
}

func newLRU[K comparable, V any](limit int64) *lru[K, V] {
	return &lru[K, V]{limit: limit, order: list.New(), at: make(map[K]*list.Element)}
}

func (l *lru[K, V]) get(key K) (V, bool) {
	el, ok := l.at[key]
	if !ok {
		var none V
		return none, false
	}
	l.order.MoveToFront(el)
	return el.Value.(*kept[K, V]).value, true
}

func (l *lru[K, V]) add(key K, value V, weight int64) {
	l.remove(key)
	l.at[key] = l.order.PushFront(&kept[K, V]{key, value, weight})
	l.weight += weight
	for l.weight > l.limit && l.order.Len() > 1 { // the latest value stays
		l.remove(l.order.Back().Value.(*kept[K, V]).key)
	}
}

func (l *lru[K, V]) remove(key K) {
	if el, ok := l.at[key]; ok {
		l.weight -= el.Value.(*kept[K, V]).weight
		l.order.Remove(el)
		delete(l.at, key)
	}
}

func (l *lru[K, V]) removeIf(goes func(K) bool) {
	for key := range l.at {
		if goes(key) {
			l.remove(key)
		}
	}
}

// values returns all values, most recently used first.
func (l *lru[K, V]) values() []V {
	out := make([]V, 0, l.order.Len())
	for el := l.order.Front(); el != nil; el = el.Next() {
		out = append(out, el.Value.(*kept[K, V]).value)
	}
	return out
}
