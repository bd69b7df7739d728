package lru

import (
	"slices"
	"testing"
)

func TestTheOldestGoFirst(t *testing.T) {
	c := New[string, int](10)
	for i, key := range []string{"a", "b", "c"} {
		c.Add(key, i, 3)
	}
	if _, ok := c.Get("a"); !ok {
		t.Error("a is gone")
	}
	if dropped := c.Add("d", 3, 5); dropped != 2 {
		t.Errorf("%d were dropped, want b and c", dropped)
	}
	if got := c.Values(); !slices.Equal(got, []int{3, 0}) || c.Len() != 2 || c.Weight() != 8 {
		t.Errorf("kept %v, %d of weight %d", got, c.Len(), c.Weight())
	}
}

func TestAddReplaces(t *testing.T) {
	c := New[string, int](10)
	c.Add("a", 1, 4)
	c.Add("a", 2, 6)
	if v, ok := c.Get("a"); !ok || v != 2 || c.Weight() != 6 || c.Len() != 1 {
		t.Errorf("got %d, %v, weight %d", v, ok, c.Weight())
	}
	// A value that is too heavy replaces nothing and leaves nothing stale.
	c.Add("b", 3, 1)
	c.Add("a", 4, 11)
	if _, ok := c.Get("a"); ok || c.Len() != 1 || c.Weight() != 1 {
		t.Errorf("%d values of weight %d", c.Len(), c.Weight())
	}
}

func TestKeepLatest(t *testing.T) {
	c := New[string, int](10)
	c.KeepLatest = true
	c.Add("a", 1, 5)
	if dropped := c.Add("b", 2, 100); dropped != 1 || c.Weight() != 100 {
		t.Errorf("dropped %d, weight %d", dropped, c.Weight())
	}
	c.Add("c", 3, 1)
	if got := c.Values(); !slices.Equal(got, []int{3}) {
		t.Errorf("kept %v", got)
	}
}

func TestRemove(t *testing.T) {
	c := New[int, int](100)
	for i := range 10 {
		c.Add(i, i, 1)
	}
	c.Remove(3)
	c.Remove(3)
	c.RemoveIf(func(k int) bool { return k%2 == 0 })
	if got := c.Values(); !slices.Equal(got, []int{9, 7, 5, 1}) || c.Weight() != 4 {
		t.Errorf("kept %v of weight %d", got, c.Weight())
	}
	c.Clear()
	if c.Len() != 0 || c.Weight() != 0 || len(c.Values()) != 0 {
		t.Errorf("%d values are left", c.Len())
	}
	c.Add(1, 1, 1)
	if _, ok := c.Get(1); !ok {
		t.Error("a cache that was cleared takes nothing")
	}
}
