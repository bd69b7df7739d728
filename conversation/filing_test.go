package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// meeting is a store in which something else happens between the reads of a caller and
// its first commit that changes a list, or between its reads.
type meeting struct {
	kv.Store
	before  func()
	reading bool
}

func (m *meeting) meet() {
	if fn := m.before; fn != nil {
		m.before = nil
		fn()
	}
}

func (m *meeting) Get(ctx context.Context, key string) (kv.Row, error) {
	if m.reading && keyspace.ByTimes().Contains(key) && keyspace.Last(key) == "c" {
		m.meet()
	}
	return m.Store.Get(ctx, key)
}

func (m *meeting) Commit(ctx context.Context, b *kv.Batch) error {
	if b.Touches(keyspace.ByTimes()) || b.Touches(keyspace.AllConversationsOf()) || b.Touches(keyspace.Prefix(conversation.FiltersKey)) {
		m.meet()
	}
	return m.Store.Commit(ctx, b)
}

// filer is a call that changes the rows of filters. Its preparation is over before the
// others begin.
type filer struct {
	name    string
	prepare func(f *fixture, s *conversation.Store) func() error
}

// filers returns them.
func filers(t *testing.T) []filer {
	ctx := t.Context()
	plain := func(name string, do func(f *fixture, s *conversation.Store) error) filer {
		return filer{name, func(f *fixture, s *conversation.Store) func() error { return func() error { return do(f, s) } }}
	}
	save := func(name string, later time.Duration) filer {
		return filer{name, func(f *fixture, s *conversation.Store) func() error {
			c := must(s.Open(ctx, "c"))
			return func() error {
				f.clock = f.clock.Add(later)
				err := c.AppendTurn(ctx, newTurn(t, f.clock.String()))
				if err == nil {
					_, err = c.Save(ctx, nil)
				}
				return err
			}
		}}
	}
	return []filer{
		save("a save", time.Second),
		save("a save that moves it", time.Hour),
		save("a save after the clock was set back", -time.Hour),
		plain("filing", func(_ *fixture, s *conversation.Store) error { return s.FileAll(ctx, nil) }),
		plain("filing after the salt was lost", func(f *fixture, s *conversation.Store) error {
			err := f.rows.Commit(ctx, &kv.Batch{Delete: []string{conversation.FiltersKey}})
			return errors.Join(err, s.FileAll(ctx, nil))
		}),
		plain("removal", func(_ *fixture, s *conversation.Store) error { return s.Delete(ctx, "c", nil) }),
		plain("another workspace", func(_ *fixture, s *conversation.Store) error {
			_, err := s.Rewrite(ctx, "c", func(row kv.Row) ([]byte, []blob.ID, error) {
				rec := new(stetv1.ConversationRecord)
				if !keyspace.Conversations().Contains(row.Key) || proto.Unmarshal(row.Value, rec) != nil || rec.GetWorkspace() == "/b" {
					return nil, nil, nil
				}
				rec.Workspace = "/b"
				value, err := proto.Marshal(rec)
				return value, nil, err
			})
			return err
		}),
		plain("creation", func(_ *fixture, s *conversation.Store) error {
			_, err := s.Create(ctx, conversation.Info{ID: "new", Workspace: "/b", Agent: "y"})
			return err
		}),
	}
}

// TestFilingBesideAnother lets each call that changes the rows of filters lose the race
// against each other one, in a store of this release and in those of earlier ones.
func TestFilingBesideAnother(t *testing.T) {
	stores := map[string]func(*fixture) error{
		"this release":                  func(*fixture) error { return nil },
		"an earlier one":                func(f *fixture) error { f.unfile(t); return nil },
		"an earlier one without spans":  func(f *fixture) error { return f.Unspan(t.Context()) },
		"one that was filed half a way": func(f *fixture) error { f.unfile(t); return conversation.FileFirst(t.Context(), f.Store) },
	}
	for name, earlier := range stores {
		for _, late := range filers(t) {
			for _, first := range filers(t) {
				for _, reading := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s before %s, reading %v", name, first.name, late.name, reading), func(t *testing.T) {
						f := newFixture(t)
						for _, id := range []string{"a", "c", "e"} {
							must(f.Create(t.Context(), conversation.Info{ID: id, Workspace: "/a", Agent: "x"}))
							f.clock = f.clock.Add(10 * time.Minute)
						}
						rows := &meeting{Store: f.rows}
						one, other := conversation.New(f.blobs, rows, f.options()), conversation.New(f.blobs, f.rows, f.options())
						must(one.Create(t.Context(), conversation.Info{ID: "f", Workspace: "/a"})) // it knows the salt now
						must(other.Create(t.Context(), conversation.Info{ID: "g", Agent: "x"}))
						check(t, earlier(f))
						doLate, doFirst := late.prepare(f, one), first.prepare(f, other)
						rows.before, rows.reading = func() { check(t, doFirst()) }, reading
						err := doLate()
						if err != nil && !errors.Is(err, conversation.ErrStale) && !errors.Is(err, conversation.ErrNotFound) && !errors.Is(err, conversation.ErrExists) {
							t.Fatal(err)
						}
						f.agree(t)
						f.sound(t)
						check(t, f.FileAll(t.Context(), nil))
						f.agree(t)
						f.sound(t)
						f.exact(t)
					})
				}
			}
		}
	}
}
