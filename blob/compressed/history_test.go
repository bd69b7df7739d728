package compressed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
)

// script is a history of edits that can be played on several benches.
type script struct {
	rng   *rand.Rand
	files [][]version // of each file, oldest first
}

// edits returns the next versions of some files: of one mostly, of all now and
// then. A few are appended to, are undone, or come with a hint that is wrong.
func (sc *script) edits() (out []version) {
	for f, versions := range sc.files {
		if sc.rng.IntN(2) == 0 {
			continue
		}
		last := versions[len(versions)-1]
		next := version{content: edited(sc.rng, last.content), like: blob.Sum(last.content), local: last.local}
		switch sc.rng.IntN(20) {
		case 0:
			next.content, next.keep = slices.Concat(last.content, paragraph(sc.rng, 3)), int64(len(last.content))
		case 1:
			next.content = versions[max(0, len(versions)-3)].content
		case 2:
			other := sc.files[sc.rng.IntN(len(sc.files))]
			next.like = blob.Sum(other[len(other)-1].content)
		}
		sc.files[f] = append(versions, next)
		out = append(out, next)
	}
	return out
}

func (sc *script) live(last int) map[blob.ID]bool {
	live := map[blob.ID]bool{}
	for _, versions := range sc.files {
		for _, v := range versions[max(0, len(versions)-last):] {
			live[blob.Sum(v.content)] = true
		}
	}
	return live
}

// TestGenerationsOfEditsByFreshProcesses plays long histories on a store that puts
// comparisons off, with compacting that is broken off and collections in between,
// and on one that compares at once.
func TestGenerationsOfEditsByFreshProcesses(t *testing.T) {
	for seed := range uint64(testenv.Sizes(3, 6, 6)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			sc := &script{rng: rand.New(rand.NewPCG(seed, 6))}
			late, now := newBench(t, int(seed%3)), newBench(t, 1<<30)
			var first []version
			for f := range 8 {
				v := version{content: paragraph(sc.rng, 20+f*60), local: f == 3}
				sc.files = append(sc.files, []version{v})
				first = append(first, v)
			}
			late.put(first...)
			now.put(first...)
			waited := 0
			for generation := range 60 {
				edits := sc.edits()
				late.put(edits...)
				now.put(edits...)
				st := late.look()
				waited += st.count(kindHinted)
				for id, base := range st.bases {
					if st.kinds[base] == kindHinted {
						t.Fatalf("%s leans on %s, which waits", id, base)
					}
				}
				if sc.rng.IntN(4) == 0 {
					late.compactSome(sc.rng)
				}
				if sc.rng.IntN(15) == 0 {
					live := sc.live(1 + generation)
					if sc.rng.IntN(2) == 0 {
						live = sc.live(1 + sc.rng.IntN(20))
					}
					late.collect(live)
					now.collect(live)
				}
			}
			if waited == 0 {
				t.Error("nothing was put off")
			}
			late.check()
			late.compactAll()
			now.compactAll()
			live := sc.live(1000)
			late.collect(live)
			now.collect(live)
			got, want := late.check(), now.check()
			if n := got.count(kindHinted); n > 0 {
				t.Errorf("%d records wait", n)
			}
			t.Logf("%d bytes, at once %d", got.bytes, want.bytes)
			if 10*got.bytes > 13*want.bytes {
				t.Errorf("%d bytes, compared at once %d", got.bytes, want.bytes)
			}
		})
	}
}

// compactSome compacts a part: pages that are broken off after a while, or two
// processes at a time.
func (b *bench) compactSome(rng *rand.Rand) {
	b.t.Helper()
	ctx, stop := context.WithCancel(b.t.Context())
	defer stop()
	switch rng.IntN(3) {
	case 0:
		b.must(b.compact(ctx, b.fresh(), 1+rng.IntN(4)))
	case 1: // before an exchange, or after it and before what it left is looked at
		left := rng.IntN(3)
		below := &interrupted{Blobs: b.kept}
		below.before = func([]blob.Blob) {
			if left--; left < 0 {
				stop()
			}
		}
		err := b.compact(ctx, New(below, &Options{Later: func(int64) {}}), 8)
		if err != nil && ctx.Err() == nil {
			b.t.Fatal(err)
		}
	case 2:
		infos, _, err := b.kept.Arrived(ctx, b.mark, 64)
		b.must(err)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if _, err := b.fresh().Compact(ctx, b.kept, infos); err != nil {
					b.t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

// TestCompactBesidePutsAndSweeps lets everybody at the same contents.
func TestCompactBesidePutsAndSweeps(t *testing.T) {
	b := newBench(t, 1)
	sc := &script{rng: rand.New(rand.NewPCG(7, 7))}
	var first []version
	for range 6 {
		v := version{content: paragraph(sc.rng, 200)}
		sc.files = append(sc.files, []version{v})
		first = append(first, v)
	}
	b.put(first...)
	var mu sync.Mutex // guards live
	live := sc.live(1000)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				mark := ""
				for {
					infos, next, err := b.kept.Arrived(t.Context(), mark, 16)
					if err != nil || next == mark {
						break
					}
					if _, err := b.fresh().Compact(t.Context(), b.kept, infos); err != nil {
						t.Error(err)
						return
					}
					mark = next
				}
			}
		})
	}
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			gen, err := b.kept.Begin(t.Context())
			if err == nil {
				_, err = b.kept.Sweep(t.Context(), gen, blob.SweepOptions{Live: func(id blob.ID) bool {
					mu.Lock()
					defer mu.Unlock()
					return live[id]
				}})
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 40 {
		edits := sc.edits()
		mu.Lock()
		live = sc.live(5)
		mu.Unlock()
		for i := range edits { // what they extend may be gone
			edits[i].keep = 0
		}
		b.put(edits...)
	}
	close(done)
	wg.Wait()
	b.collect(live)
	b.compactAll()
	for id := range live {
		if b.contents[id] == nil {
			t.Errorf("%s is gone", id)
		}
	}
	if st := b.check(); st.count(kindHinted) > 0 {
		t.Errorf("%d records wait", st.count(kindHinted))
	}
}

// TestBlobsCompactedByAnotherProcessAreReadAgain has a process put an edit of what it
// put and read itself, and another process has compacted since.
func TestBlobsCompactedByAnotherProcessAreReadAgain(t *testing.T) {
	b := newBench(t, 0)
	rng := rand.New(rand.NewPCG(8, 8))
	first := version{content: paragraph(rng, 400)}
	second := version{content: edited(rng, first.content), like: b.put(first)[0]}
	third := version{content: edited(rng, second.content), like: blob.Sum(second.content)}
	s := b.fresh()
	b.must(s.Put(t.Context(), second.blob()))
	if _, err := s.Get(t.Context(), third.like); err != nil {
		t.Fatal(err)
	}
	if st := b.look(); st.kinds[third.like] != kindHinted {
		t.Fatalf("the second is of kind %d", st.kinds[third.like])
	}
	b.compactAll()
	s.reads = nearReads
	b.must(s.Put(t.Context(), third.blob()))
	if st := b.look(); st.bases[blob.Sum(third.content)] != third.like {
		t.Errorf("the third is of kind %d", st.kinds[blob.Sum(third.content)])
	}
}

// BenchmarkCompactHinted compacts 3,000 small edits.
func BenchmarkCompactHinted(tb *testing.B) {
	for tb.Loop() {
		tb.StopTimer()
		b := newBench(tb, 0)
		rng := rand.New(rand.NewPCG(1, 1))
		var first, second []version
		for range 3000 {
			first = append(first, version{content: paragraph(rng, 400)})
		}
		ids := b.put(first...)
		b.compactAll()
		for i, v := range first {
			second = append(second, version{content: edited(rng, v.content), like: ids[i]})
		}
		b.put(second...)
		tb.StartTimer()
		b.compactAll()
	}
}
