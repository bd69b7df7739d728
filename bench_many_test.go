package stet

import (
	"slices"
	"testing"
	"time"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/populate"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/search"
)

// manyRounds is how often each call is measured.
const manyRounds = 15

// BenchmarkManyConversations compares what people wait for in a store of 1,000
// conversations and in a large one, in turns: the median of each, and their ratio. A look
// at every conversation is the baseline that an index replaces.
func BenchmarkManyConversations(b *testing.B) {
	small, large := manyStore(b, 1000), manyStore(b, testenv.Scale(5000, 100_000))
	list := func(opts conversation.ListOptions) func(*DB) error {
		return func(db *DB) error {
			_, err := db.Conversations().List(b.Context(), &opts)
			return err
		}
	}
	find := func(words string) func(*DB) error {
		return func(db *DB) error {
			index, err := db.Search(b.Context())
			if err == nil {
				_, err = index.Update(b.Context())
			}
			if err == nil {
				_, err = index.Search(b.Context(), words, &search.SearchOptions{})
			}
			return err
		}
	}
	for _, c := range []struct {
		name string
		call func(*DB) error
	}{
		{"list", list(conversation.ListOptions{})},
		{"filter-none", list(conversation.ListOptions{Agent: "nobody"})},
		{"filter-workspace", list(conversation.ListOptions{Workspace: populate.Workspace(1)})},
		{"filter-most", list(conversation.ListOptions{Agent: populate.Agents[0]})},
		{"search", find("number777")},
		{"search-common", find("retry")},
		{"every-conversation", list(conversation.ListOptions{Match: func(conversation.Info) bool { return false }})},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took [2][]time.Duration
			for b.Loop() {
				for range manyRounds {
					for i, db := range []*DB{small, large} {
						began := time.Now()
						if err := c.call(db); err != nil {
							b.Fatal(err)
						}
						took[i] = append(took[i], time.Since(began))
					}
				}
			}
			for i := range took {
				slices.Sort(took[i])
			}
			few, many := took[0][len(took[0])/2], took[1][len(took[1])/2]
			b.ReportMetric(few.Seconds()*1000, "few-ms")
			b.ReportMetric(many.Seconds()*1000, "many-ms")
			b.ReportMetric(many.Seconds()/few.Seconds(), "many/few")
		})
	}
}

// manyStore makes a store of n conversations whose indexes are up to date.
func manyStore(b *testing.B, n int) *DB {
	b.Helper()
	db, err := Open(b.Context(), b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	if err := populate.Conversations(b.Context(), db.Conversations(), n); err != nil {
		b.Fatal(err)
	}
	if err := db.UpdateIndexes(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	return db
}
