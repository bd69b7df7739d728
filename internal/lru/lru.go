// Package lru keeps the most recently used values up to a total weight.
//
//	c := lru.New[string, []byte](1 << 20)
//	c.Add("a", data, int64(len(data)))
//	data, ok := c.Get("a")
//
// A cache is not safe for concurrent use: the caller locks, since it usually guards
// more than the cache.
package lru

import "container/list"

// Cache keeps values by their keys. Use New.
type Cache[K comparable, V any] struct {
	// KeepLatest keeps the value that was added last, whatever it weighs. Without it a
	// value that is heavier than the limit is not kept.
	KeepLatest bool

	limit, weight int64
	order         *list.List // of *kept[K, V], most recently used first
	at            map[K]*list.Element
}

type kept[K comparable, V any] struct {
	key    K
	value  V
	weight int64
}

// New returns an empty cache.
func New[K comparable, V any](limit int64) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, order: list.New(), at: make(map[K]*list.Element)}
}

// Get returns a value and makes it the most recently used.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	el, ok := c.at[key]
	if !ok {
		var none V
		return none, false
	}
	c.order.MoveToFront(el)
	return el.Value.(*kept[K, V]).value, true
}

// Add keeps a value in place of the one that the key had, and returns how many others
// were dropped for it.
func (c *Cache[K, V]) Add(key K, value V, weight int64) (dropped int) {
	c.Remove(key)
	if weight > c.limit && !c.KeepLatest {
		return 0
	}
	c.at[key] = c.order.PushFront(&kept[K, V]{key, value, weight})
	c.weight += weight
	for c.weight > c.limit && c.order.Len() > 1 {
		c.Remove(c.order.Back().Value.(*kept[K, V]).key)
		dropped++
	}
	return dropped
}

// Remove drops the value of a key, if there is one.
func (c *Cache[K, V]) Remove(key K) {
	if el, ok := c.at[key]; ok {
		c.weight -= c.order.Remove(el).(*kept[K, V]).weight
		delete(c.at, key)
	}
}

// RemoveIf drops the values whose keys goes returns true for.
func (c *Cache[K, V]) RemoveIf(goes func(K) bool) {
	for key := range c.at {
		if goes(key) {
			c.Remove(key)
		}
	}
}

// Clear drops everything.
func (c *Cache[K, V]) Clear() {
	c.order.Init()
	clear(c.at)
	c.weight = 0
}

// Len returns the number of values.
func (c *Cache[K, V]) Len() int { return c.order.Len() }

// Weight returns the sum of the weights.
func (c *Cache[K, V]) Weight() int64 { return c.weight }

// Values returns all values, most recently used first.
func (c *Cache[K, V]) Values() []V {
	out := make([]V, 0, c.order.Len())
	for el := c.order.Front(); el != nil; el = el.Next() {
		out = append(out, el.Value.(*kept[K, V]).value)
	}
	return out
}
