package conversation_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/sqlite"
)

// stack is a blob store, counted at its bottom, and a row store.
type stack struct {
	blobs   blob.Store
	rows    kv.Store
	sweeper blob.Sweeper
	lister  blob.Lister
	written func() int64 // stored bytes so far
}

func memoryStack(testing.TB) stack {
	mem := memblob.New()
	return stack{
		blobs: blob.Checked(compressed.New(mem, nil)), rows: memkv.New(mem), sweeper: mem, lister: mem,
		written: func() int64 { return stored(mem) },
	}
}

func sqliteStack(t testing.TB) stack {
	db, err := sqlite.Open(context.Background(), t.TempDir(), nil)
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	blobs := db.Blobs()
	return stack{
		blobs: blob.Checked(compressed.New(blobs, nil)), rows: db.Rows(), sweeper: blobs, lister: blobs,
		written: func() int64 { return stored(blobs) },
	}
}

func stored(l blob.Lister) (n int64) {
	err := l.List(context.Background(), blob.ID{}, func(i blob.Info) error { n += i.Stored; return nil })
	if err != nil {
		panic(err)
	}
	return n
}

var stacks = map[string]func(testing.TB) stack{"memory": memoryStack, "sqlite": sqliteStack}

// prefill makes a conversation of n turns quickly: their contents do not matter
// to the cost of the next save, the length of the root does.
func prefill(t testing.TB, s *conversation.Store, n int) *conversation.Conversation {
	t.Helper()
	ctx := context.Background()
	c := must(s.Create(ctx, conversation.Info{}))
	for i := range n {
		check(t, c.AppendTurn(ctx, newTurn(t, fmt.Sprint("earlier ", i))))
		check(t, c.AppendPrompt(ctx, fmt.Appendf(nil, `{"role":"user","content":"earlier %d"}`, i)))
		check(t, c.SetTiming(ctx, &agentv1.StepTiming{DurationMs: uint64(i)}))
	}
	must(c.Save(ctx, nil))
	return c
}

// saveTurn saves a turn of a message and six steps, as agents do.
func saveTurn(t testing.TB, c *conversation.Conversation, n int) {
	ctx := context.Background()
	var steps []*agentv1.ConversationStep
	for i := range 6 {
		steps = append(steps, say(fmt.Sprintf("turn %d step %d %x", n, i, blob.Sum(fmt.Append(nil, n, i)))))
	}
	turn, err := conversation.NewTurn(user(fmt.Sprint("turn ", n)), steps...)
	check(t, err)
	check(t, c.AppendTurn(ctx, turn))
	check(t, c.SetTiming(ctx, &agentv1.StepTiming{DurationMs: uint64(n)}))
	check(t, c.AppendPrompt(ctx, fmt.Appendf(nil, `{"role":"user","content":"%d"}`, n)))
	_, err = c.Save(ctx, &conversation.SaveOptions{MessageID: fmt.Sprint("m", n)})
	check(t, err)
}

// BenchmarkSave compares a save at turn 10 with one at turn 10,000.
func BenchmarkSave(b *testing.B) {
	for name, open := range stacks {
		for _, turns := range []int{10, 10_000} {
			b.Run(fmt.Sprintf("%s/turn=%d", name, turns), func(b *testing.B) {
				st := open(b)
				c := prefill(b, conversation.New(st.blobs, st.rows, nil), turns)
				before := st.written()
				n := 0
				for b.Loop() {
					saveTurn(b, c, n)
					n++
				}
				b.ReportMetric(float64(st.written()-before)/float64(n), "stored-B/op")
			})
		}
	}
}

// A save must not cost more in bytes as the conversation grows.
func TestBytesOfASaveDoNotGrow(t *testing.T) {
	long := testenv.Scale(3000, 10_000)
	for name, open := range stacks {
		t.Run(name, func(t *testing.T) {
			cost := func(turns int) float64 {
				st := open(t)
				c := prefill(t, conversation.New(st.blobs, st.rows, nil), turns)
				before := st.written()
				const saves = 40
				for n := range saves {
					saveTurn(t, c, n)
				}
				return float64(st.written()-before) / saves
			}
			early, late := cost(10), cost(long)
			t.Logf("stored bytes of a save: %.0f at turn 10, %.0f at turn %d", early, late, long)
			if late > 1.5*early {
				t.Errorf("a save stores %.0f bytes at turn 10 and %.0f at turn %d", early, late, long)
			}
		})
	}
}

// BenchmarkHydrate compares reading the last ten turns of a short and a long
// conversation, and a whole one with parsing as many full copies.
func BenchmarkHydrate(b *testing.B) {
	ctx := context.Background()
	st := memoryStack(b)
	s := conversation.New(st.blobs, st.rows, nil)
	for _, turns := range []int{20, 1000, 10_000} {
		c := prefill(b, s, turns)
		b.Run(fmt.Sprintf("last-10/turns=%d", turns), func(b *testing.B) {
			for b.Loop() {
				must(s.Hydrate(ctx, c.ID(), &conversation.HydrateOptions{TurnFrom: -10, OnlyTurns: true}))
			}
		})
		if turns != 1000 {
			continue
		}
		b.Run("whole/turns=1000", func(b *testing.B) {
			for b.Loop() {
				must(s.Hydrate(ctx, c.ID(), nil))
			}
		})
		inline, _, err := must(s.Hydrate(ctx, c.ID(), nil)).Inline()
		check(b, err)
		raw := must(proto.Marshal(inline))
		b.Run("baseline/1000-full-copies", func(b *testing.B) {
			for b.Loop() {
				for range 1000 {
					check(b, proto.Unmarshal(raw, new(agentv1.ConversationState)))
				}
			}
		})
	}
}

// Saving after every step of a long turn must not store the turn's list of steps
// again and again.
func TestALongTurnIsStoredAsDifferences(t *testing.T) {
	ctx := context.Background()
	st := memoryStack(t)
	c := must(conversation.New(st.blobs, st.rows, nil).Create(ctx, conversation.Info{}))
	check(t, c.AppendTurn(ctx, newTurn(t, "a long task")))
	must(c.Save(ctx, nil))
	cost := func(steps int) float64 {
		before := st.written()
		for n := range steps {
			check(t, c.AppendStep(ctx, say(fmt.Sprint(before, n))))
			must(c.Save(ctx, nil))
		}
		return float64(st.written()-before) / float64(steps)
	}
	early := cost(50)
	cost(700)
	late := cost(50)
	t.Logf("stored bytes of a step: %.0f at step 50, %.0f at step 800", early, late)
	if whole := 800 * 34.0; late > whole/8 {
		t.Errorf("a step stores %.0f bytes early and %.0f late, where the list of steps has %.0f", early, late, whole)
	}
}
