package search_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/searchtest"
)

// fixture is a store over memory, with an index, whose clock ticks by a second.
type fixture struct {
	*conversation.Store
	blobs blob.Store
	rows  *memkv.Store
	index *search.Index
	path  string
	clock time.Time
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	mem := memblob.New()
	f := &fixture{blobs: blob.Checked(mem), rows: memkv.New(mem), clock: time.UnixMilli(1_700_000_000_000), path: filepath.Join(t.TempDir(), "search.db")}
	f.Store = conversation.New(f.blobs, f.rows, &conversation.Options{Now: func() time.Time {
		f.clock = f.clock.Add(time.Second)
		return f.clock
	}})
	f.index = f.open(t, f.path)
	return f
}

func (f *fixture) open(t testing.TB, path string) *search.Index {
	t.Helper()
	ix, err := search.Open(t.Context(), f.Store, f.blobs, f.rows, &search.Options{Path: path})
	check(t, err)
	t.Cleanup(func() { check(t, ix.Close()) })
	return ix
}

// What every index is tested with.
var (
	check = searchtest.Check
	say   = searchtest.Say
	think = searchtest.Think
	shell = searchtest.Shell
	read  = searchtest.Read
	turn  = searchtest.Turn
	add   = searchtest.Add
	find  = searchtest.Find
)

// save makes a conversation of turns.
func (f *fixture) save(t testing.TB, id string, turns ...conversation.Turn) *conversation.Conversation {
	t.Helper()
	c, err := f.Create(t.Context(), conversation.Info{ID: id, Title: "title of " + id})
	check(t, err)
	add(t, c, turns...)
	return c
}

func (f *fixture) update(t testing.TB, ids ...string) search.Stats {
	t.Helper()
	stats, err := f.index.Update(t.Context(), ids...)
	check(t, err)
	return stats
}
