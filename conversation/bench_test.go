package conversation_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/cached"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
)

// stack is a blob store, counted at its bottom, and a row store.
type stack struct {
	blobs     blob.Store
	rows      kv.Store
	inventory upkeep.Inventory
	written   func() int64 // stored bytes so far
}

func memoryStack(testing.TB) stack {
	mem := memblob.New()
	return stack{
		blobs: blob.Checked(compressed.New(mem, nil)), rows: memkv.New(mem), inventory: mem,
		written: func() int64 { return stored(mem) },
	}
}

func sqliteStack(t testing.TB) stack {
	db, err := sqlite.Open(context.Background(), t.TempDir(), nil)
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	blobs := db.Blobs()
	return stack{
		blobs: blob.Checked(compressed.New(blobs, nil)), rows: db.Rows(), inventory: blobs,
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

// BenchmarkSave compares a save at turn 10,000 with one at turn 10, in turns:
// ratio is of the time, bytes-ratio of what is stored. The targets are 1.5.
func BenchmarkSave(b *testing.B) {
	for name, open := range stacks {
		b.Run(name, func(b *testing.B) {
			var stacks [2]stack
			var handles [2]*conversation.Conversation
			var took [2]time.Duration
			var before, bytes [2]int64
			for i, turns := range []int{10, 10_000} {
				stacks[i] = open(b)
				handles[i] = prefill(b, conversation.New(stacks[i].blobs, stacks[i].rows, nil), turns)
				before[i] = stacks[i].written()
			}
			n := 0
			for b.Loop() {
				for i, c := range handles {
					start := time.Now()
					saveTurn(b, c, n)
					took[i] += time.Since(start)
				}
				n++
			}
			for i := range stacks {
				bytes[i] = stacks[i].written() - before[i]
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took[0].Microseconds())/float64(n), "µs-at-10")
			b.ReportMetric(float64(took[1].Microseconds())/float64(n), "µs-at-10000")
			b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "ratio")
			b.ReportMetric(float64(bytes[1])/float64(bytes[0]), "bytes-ratio")
			b.ReportMetric(float64(bytes[1])/float64(n), "stored-B/op")
		})
	}
}

// BenchmarkSaveDurable compares a save of a turn with appending the same bytes to
// a file and syncing it; ratio is of the medians, the target is 2.5. sqlite-ratio is that
// of the SQL library by itself, when it commits the same bytes as one row: no save in a
// transaction of it can be faster. ratio-best is of the fastest of each, which other
// programs on the machine disturb least.
func BenchmarkSaveDurable(b *testing.B) {
	st := sqliteStack(b)
	c := prefill(b, conversation.New(st.blobs, st.rows, nil), 10)
	saveTurn(b, c, 1_000_000)
	before := st.written()
	saveTurn(b, c, 1_000_001)
	record := make([]byte, st.written()-before)
	file, err := os.Create(filepath.Join(b.TempDir(), "log"))
	check(b, err)
	defer file.Close()
	raw := func() {
		_, err := file.Write(record)
		check(b, err)
		check(b, file.Sync())
	}
	raw() // the file has to grow once
	row := rowCommit(b, record)
	var took [3][]time.Duration
	n := 0
	for b.Loop() {
		for i, run := range []func(){func() { saveTurn(b, c, n) }, raw, row} {
			start := time.Now()
			run()
			took[i] = append(took[i], time.Since(start))
		}
		n++
	}
	save, append1, library := median(took[0]), median(took[1]), median(took[2])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(save.Microseconds()), "µs-save-p50")
	b.ReportMetric(float64(append1.Microseconds()), "µs-append-p50")
	b.ReportMetric(save.Seconds()/append1.Seconds(), "ratio")
	b.ReportMetric(library.Seconds()/append1.Seconds(), "sqlite-ratio")
	b.ReportMetric(took[0][0].Seconds()/took[1][0].Seconds(), "ratio-best") // sorted by median
}

// rowCommit returns a function that commits a record as one row of a database of the SQL
// library, with the same pragmas as ours.
func rowCommit(b *testing.B, record []byte) func() {
	c, err := sqlite3.Open("file:" + filepath.Join(b.TempDir(), "rows.db"))
	check(b, err)
	b.Cleanup(func() { c.Close() })
	check(b, c.Exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE records (n INTEGER PRIMARY KEY, data BLOB)`))
	s, _, err := c.Prepare(`INSERT INTO records (data) VALUES (?)`)
	check(b, err)
	b.Cleanup(func() { s.Close() })
	return func() {
		check(b, s.BindBlob(1, record))
		check(b, s.Exec())
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkSaveTogether compares 32 conversations that save at once with one that
// saves as often; speedup is the one's time over theirs, the target is 8.
func BenchmarkSaveTogether(b *testing.B) {
	const many = 32
	st := sqliteStack(b)
	s := conversation.New(st.blobs, st.rows, nil)
	var all []*conversation.Conversation
	for range many {
		all = append(all, prefill(b, s, 10))
	}
	alone := prefill(b, s, 10)
	var took [2]time.Duration
	n := 0
	for b.Loop() {
		start := time.Now()
		for i := range many {
			saveTurn(b, alone, n*many+i)
		}
		took[0] += time.Since(start)
		start = time.Now()
		var wg sync.WaitGroup
		for i, c := range all {
			wg.Go(func() { saveTurn(b, c, n*many+i) })
		}
		wg.Wait()
		took[1] += time.Since(start)
		n++
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(n*many)/took[0].Seconds(), "alone/s")
	b.ReportMetric(float64(n*many)/took[1].Seconds(), "together/s")
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "speedup")
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

// BenchmarkHydrate compares a whole conversation of 1,000 turns with parsing as
// many full copies, as a store has that keeps one for each turn; ratio is theirs
// over ours, the target is 10.
func BenchmarkHydrate(b *testing.B) {
	ctx := context.Background()
	const turns, copies = 1000, 20
	for name, open := range stacks {
		b.Run(name, func(b *testing.B) {
			st := open(b)
			s := conversation.New(st.blobs, st.rows, nil)
			c := prefill(b, s, turns)
			inline, _, err := must(s.Hydrate(ctx, c.ID(), nil)).Inline()
			check(b, err)
			raw := must(proto.Marshal(inline))
			var took [2]time.Duration
			for b.Loop() {
				start := time.Now()
				must(s.Hydrate(ctx, c.ID(), nil))
				took[0] += time.Since(start)
				start = time.Now()
				for range copies {
					check(b, proto.Unmarshal(raw, new(agentv1.ConversationState)))
				}
				took[1] += time.Since(start) * turns / copies
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(took[0].Seconds()*1e6/float64(b.N), "µs-hydrate")
			b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "ratio")
		})
	}
}

// BenchmarkHydratePart reads the last ten turns of 10,000 and of 100, in turns,
// as one does who looks at a conversation: the first time, and again. ratio is of
// the time. A root is verified as a whole, and has some 80 bytes for each turn, so
// that the first look grows with them; what was verified stays in the cache.
func BenchmarkHydratePart(b *testing.B) {
	ctx := context.Background()
	for name, open := range stacks {
		for _, again := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/again=%v", name, again), func(b *testing.B) {
				st := open(b)
				if again {
					st.blobs = cached.New(st.blobs, nil)
				}
				s := conversation.New(st.blobs, st.rows, nil)
				var took [2]time.Duration
				ids := []string{prefill(b, s, 100).ID(), prefill(b, s, 10_000).ID()}
				for b.Loop() {
					for i, id := range ids {
						start := time.Now()
						must(s.Hydrate(ctx, id, &conversation.HydrateOptions{TurnFrom: -10, OnlyTurns: true}))
						took[i] += time.Since(start)
					}
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(took[0].Seconds()*1e6/float64(b.N), "µs-of-100")
				b.ReportMetric(took[1].Seconds()*1e6/float64(b.N), "µs-of-10000")
				b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "ratio")
			})
		}
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
