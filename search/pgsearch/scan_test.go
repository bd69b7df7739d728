package pgsearch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/pgsearch"
)

// scan returns the messages that have a word, by reading all of them.
func (s *store) scan(t testing.TB, said map[string][]string, packed map[string]bool, match func(words []string) bool) (found []string) {
	t.Helper()
	for id, texts := range said {
		if packed[id] {
			continue
		}
		for i, text := range texts {
			if match(strings.Fields(text)) {
				found = append(found, fmt.Sprintf("%s/turn-%d", id, i+1))
			}
		}
	}
	slices.Sort(found)
	return found
}

// everything returns all hits, page by page.
func everything(t testing.TB, ix search.Searcher, query string) (found []string) {
	t.Helper()
	opts := &search.SearchOptions{Limit: 3}
	for {
		page, err := ix.Search(t.Context(), query, opts)
		check(t, err)
		for _, h := range page.Hits {
			found = append(found, h.Conversation+"/"+h.MessageID)
		}
		if opts.Cursor = page.Next; page.Next == "" {
			slices.Sort(found)
			return found
		}
	}
}

// TestSearchEqualsAScanAfterKills changes conversations at random, archives some, and
// kills updates at any of their readings, with merges after each batch.
func TestSearchEqualsAScanAfterKills(t *testing.T) {
	pgsearch.Small(t)
	db, runs := openDB(t, newDatabase(t)), 0
	vocabulary := []string{"alpha", "alpine", "beta", "gamma", "delta"}
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		name, s := fmt.Sprint("tenant", runs), newStore()
		said, packed, made := make(map[string][]string), make(map[string]bool), 0
		index := func(blobs *stopping) *pgsearch.Index {
			ix, err := db.Index(name, conversation.New(blobs, s.rows, nil), blobs, s.rows)
			check(t, err)
			ix.Packed = func(_ context.Context, id string) (bool, error) { return packed[id], nil }
			return ix
		}
		whole := index(&stopping{Store: s.blobs, cancel: func() {}})
		text := func(rt *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 4).Draw(rt, "text"), " ")
		}
		any := func(rt *rapid.T) string {
			var ids []string
			for id := range said {
				ids = append(ids, id)
			}
			if len(ids) == 0 {
				rt.Skip("no conversation")
			}
			slices.Sort(ids)
			return rapid.SampledFrom(ids).Draw(rt, "which")
		}
		compare := func(rt *rapid.T) {
			update(t, whole)
			for query, match := range map[string]func([]string) bool{
				"beta ":         func(w []string) bool { return slices.Contains(w, "beta") },
				"alp":           func(w []string) bool { return slices.Contains(w, "alpha") || slices.Contains(w, "alpine") },
				"gamma delta":   func(w []string) bool { return slices.Contains(w, "gamma") && slices.Contains(w, "delta") },
				`"gamma delta"`: func(w []string) bool { return strings.Contains(strings.Join(w, " "), "gamma delta") },
			} {
				if got, want := everything(t, whole, query), s.scan(t, said, packed, match); !slices.Equal(got, want) {
					rt.Fatalf("%s finds %q, want %q", query, got, want)
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(rt *rapid.T) {
				made++
				id, words := fmt.Sprint("c", made), text(rt)
				s.say(t, id, words)
				said[id] = []string{words}
			},
			"save": func(rt *rapid.T) {
				id, words := any(rt), text(rt)
				s.say(t, id, words)
				said[id], packed[id] = append(said[id], words), false // a save brings it back
			},
			"delete": func(rt *rapid.T) {
				id := any(rt)
				check(t, s.Delete(t.Context(), id, nil))
				delete(said, id)
			},
			"archive": func(rt *rapid.T) {
				id := any(rt)
				packed[id] = !packed[id]
				check(t, s.Changed(t.Context(), id))
			},
			"killed update": func(rt *rapid.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				blobs := &stopping{Store: s.blobs, cancel: cancel}
				blobs.left.Store(int64(rapid.IntRange(1, 40).Draw(rt, "reading")))
				if _, err := index(blobs).Update(ctx); err != nil && !errors.Is(err, context.Canceled) {
					rt.Fatal(err)
				}
				whole.Kill(t)
			},
			"rebuild": func(rt *rapid.T) {
				_, err := whole.Rebuild(t.Context())
				check(t, err)
			},
			"compare": compare,
		})
		compare(rt)
	})
}

// TestOneNodeAtATime has a process that keeps the lease: others leave the work to it, and
// take over once it is dead. One that lost its lease changes nothing.
func TestOneNodeAtATime(t *testing.T) {
	db, s := openDB(t, newDatabase(t)), newStore()
	s.say(t, "c", "alpha")
	ix := s.index(t, db, "tenant")
	done := ix.Hold(t)
	if stats, more, err := ix.Work(t.Context(), 0); err != nil || more || stats.Conversations != 0 {
		t.Errorf("beside another: %+v, more %v, %v", stats, more, err)
	}
	ix.Kill(t)
	update(t, ix)
	if got := find(t, ix, "alpha", nil); len(got) != 1 {
		t.Errorf("after it was killed: %q", got)
	}
	if err := done(); err == nil {
		t.Error("a process without its lease changed the index")
	}
}
