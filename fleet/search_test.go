package fleet_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fleet"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/pgsearch"
)

// indexed counts what the index of all tenants holds.
func indexed(t testing.TB, f *fleet.Fleet) (rows int) {
	t.Helper()
	err := f.Postgres().Pool().QueryRow(t.Context(), `SELECT (SELECT count(*) FROM stet_search.conv) + (SELECT count(*) FROM stet_search.run)`).Scan(&rows)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func updateSearch(t testing.TB, f *fleet.Fleet) int64 {
	t.Helper()
	done, more, err := f.UpdateSearch(t.Context(), time.Minute)
	if err != nil || more {
		t.Fatalf("update: more %v, %v", more, err)
	}
	return done
}

// hits returns the conversations that have words, without an update.
func hits(t testing.TB, db *stet.DB, words string) (ids []string) {
	t.Helper()
	index, err := db.Search(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opts := &search.SearchOptions{Limit: 3}
	for {
		page, err := index.Search(t.Context(), words, opts)
		if err != nil {
			t.Fatalf("%s: %v", words, err)
		}
		for _, h := range page.Hits {
			ids = append(ids, h.Conversation+"/"+h.MessageID)
		}
		if opts.Cursor = page.Next; page.Next == "" {
			slices.Sort(ids)
			return ids
		}
	}
}

func mustDo(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWordsLeaveWithTheConversation deletes and archives, and looks into the tables
// before anything was updated.
func TestWordsLeaveWithTheConversation(t *testing.T) {
	ctx := t.Context()
	f := node(t, backends(t, 15))
	db := open(t, f, "shop")
	for _, id := range []string{"one", "two", "three"} {
		_, err := talk(ctx, db, id, 2)
		mustDo(t, err)
	}
	if done := updateSearch(t, f); done != 3 {
		t.Errorf("indexed %d conversations, want 3", done)
	}
	if got := hits(t, db, "turn"); len(got) != 6 {
		t.Errorf("found %q", got)
	}
	whole := indexed(t, f)
	mustDo(t, db.Conversations().Delete(ctx, "one", nil))
	if got := indexed(t, f); got != whole-2 {
		t.Errorf("after a deletion the index has %d rows of %d", got, whole)
	}
	if got := hits(t, db, "one"); got != nil {
		t.Errorf("a deleted conversation is found: %q", got)
	}
	_, err := db.Archive(ctx, "two")
	mustDo(t, err)
	if got := indexed(t, f); got != whole-4 {
		t.Errorf("after archiving the index has %d rows of %d", got, whole)
	}
	updateSearch(t, f)
	if got := hits(t, db, "two"); got != nil {
		t.Errorf("an archived conversation is found: %q", got)
	}

	mustDo(t, f.SetSearchMode(ctx, "shop", pgsearch.Archived))
	updateSearch(t, f)
	if got := hits(t, db, "two"); len(got) != 3 {
		t.Errorf("archived ones are kept now: %q", got)
	}
	_, err = db.Archive(ctx, "three")
	mustDo(t, err)
	updateSearch(t, f)
	if got := hits(t, db, "turn"); len(got) != 4 {
		t.Errorf("archived: %q", got)
	}
	mustDo(t, f.SetSearchMode(ctx, "shop", pgsearch.On))
	updateSearch(t, f)
	if got := indexed(t, f); got != 0 {
		t.Errorf("archived ones are dropped again: %d rows are left", got)
	}
	mustDo(t, db.Unarchive(ctx, "two"))
	updateSearch(t, f)
	if got := hits(t, db, "two"); len(got) != 3 {
		t.Errorf("brought back: %q", got)
	}

	mustDo(t, f.SetSearchMode(ctx, "shop", pgsearch.Off))
	index, err := db.Search(ctx)
	mustDo(t, err)
	if _, err := index.Search(ctx, "two", nil); !errors.Is(err, pgsearch.ErrOff) {
		t.Errorf("search is off: %v", err)
	}
	updateSearch(t, f)
	if got := indexed(t, f); got != 0 {
		t.Errorf("search is off: %d rows are left", got)
	}
	if mode, err := f.SearchMode(ctx, "shop"); err != nil || mode != pgsearch.Off {
		t.Errorf("mode %q, %v", mode, err)
	}
	if err := f.SetSearchMode(ctx, "shop", "sometimes"); !errors.Is(err, pgsearch.ErrMode) {
		t.Errorf("an unknown mode: %v", err)
	}
}

// TestARequestIndexesLittle searches before anything was indexed, and after a few saves.
func TestARequestIndexesLittle(t *testing.T) {
	ctx := t.Context()
	config := backends(t, 15)
	config.Blobs = ""
	f := node(t, config)
	db := open(t, f, "shop")
	_, err := talk(ctx, db, "one", 1)
	mustDo(t, err)
	updateSearch(t, f)
	_, err = talk(ctx, db, "two", 1)
	mustDo(t, err)
	index, err := db.Search(ctx)
	mustDo(t, err)
	if stats, err := index.Update(ctx); err != nil || stats.Conversations != 1 {
		t.Errorf("a save: %+v, %v", stats, err)
	}
	if got := hits(t, db, "two"); len(got) != 2 {
		t.Errorf("a save is found at once: %q", got)
	}
	mustDo(t, f.SetSearchMode(ctx, "shop", pgsearch.Archived)) // everything must be looked at
	_, err = talk(ctx, db, "three", 1)
	mustDo(t, err)
	if stats, err := index.Update(ctx); err != nil || stats.Conversations != 0 {
		t.Errorf("a request did the work of the background: %+v, %v", stats, err)
	}
	updateSearch(t, f)
	if got := hits(t, db, "three"); len(got) != 2 {
		t.Errorf("in the background: %q", got)
	}
}

// model is what was said, by conversation.
type model struct {
	live, archived map[string][]string
}

func (m *model) scan(word string) (ids []string) {
	for id, texts := range m.live {
		for n, text := range texts {
			if slices.Contains(strings.Fields(text), word) {
				ids = append(ids, fmt.Sprintf("%s/turn-%d", id, n+1))
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// TestSearchEqualsAScan saves, deletes, archives, brings back and updates at random, and
// compares every search with a scan. Package pgsearch has the same with updates that are
// killed anywhere.
func TestSearchEqualsAScan(t *testing.T) {
	f := node(t, backends(t, 15))
	tenants := 0
	rapid.Check(t, func(rt *rapid.T) {
		ctx := t.Context()
		tenants++
		name := fmt.Sprint("tenant", tenants)
		db := open(t, f, name)
		m := &model{live: make(map[string][]string), archived: make(map[string][]string)}
		words := []string{"alpha", "beta", "gamma", "delta", "epsilon"}
		any := func(rt *rapid.T, of map[string][]string) string {
			if len(of) == 0 {
				rt.Skip("none")
			}
			var ids []string
			for id := range of {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			return rapid.SampledFrom(ids).Draw(rt, "which")
		}
		made := 0
		say := func(rt *rapid.T, c *conversation.Conversation) string {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 3).Draw(rt, "text"), " ")
			turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text})
			mustDo(t, err)
			mustDo(t, c.AppendTurn(ctx, turn))
			_, err = c.Save(ctx, nil)
			mustDo(t, err)
			return text
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(rt *rapid.T) {
				made++
				id := fmt.Sprint("c", made)
				c, err := db.Conversations().Create(ctx, conversation.Info{ID: id})
				mustDo(t, err)
				m.live[id] = []string{say(rt, c)}
			},
			"save": func(rt *rapid.T) {
				id := any(rt, m.live)
				c, err := db.Conversations().Open(ctx, id)
				mustDo(t, err)
				m.live[id] = append(m.live[id], say(rt, c))
			},
			"delete": func(rt *rapid.T) {
				id := any(rt, m.live)
				mustDo(t, db.Conversations().Delete(ctx, id, nil))
				delete(m.live, id)
				for _, word := range words {
					if got := hits(t, db, word); slices.ContainsFunc(got, func(h string) bool { return strings.HasPrefix(h, id+"/") }) {
						rt.Fatalf("%s is found in %s, which is deleted", word, id)
					}
				}
			},
			"archive": func(rt *rapid.T) {
				id := any(rt, m.live)
				if _, err := db.Archive(ctx, id); errors.Is(err, pack.ErrChanged) {
					rt.Skip("in use")
				} else {
					mustDo(t, err)
				}
				m.archived[id] = m.live[id]
				delete(m.live, id)
			},
			"bring back": func(rt *rapid.T) {
				id := any(rt, m.archived)
				mustDo(t, db.Unarchive(ctx, id))
				m.live[id] = m.archived[id]
				delete(m.archived, id)
			},
			"killed update": func(rt *rapid.T) { // its lease stays until it ends by itself
				_, err := f.Postgres().Pool().Exec(ctx, `UPDATE stet_search.tenant SET holder = 'killed', until = 0 WHERE tenant = $1`, name)
				mustDo(t, err)
			},
			"search": func(rt *rapid.T) {
				updateSearch(t, f)
				for _, word := range words {
					if got, want := hits(t, db, word), m.scan(word); !slices.Equal(got, want) {
						rt.Fatalf("%s is in %q, want %q", word, got, want)
					}
				}
			},
		})
		updateSearch(t, f)
		for _, word := range words {
			if got, want := hits(t, db, word), m.scan(word); !slices.Equal(got, want) {
				rt.Fatalf("%s is in %q, want %q", word, got, want)
			}
		}
	})
}
