package lane

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// book is a log of numbers; a place is how many there are before it.
type book struct {
	mu     sync.Mutex
	pages  []int
	weight int
	err    error
	reads  int
	hints  chan struct{}
}

func (b *book) write(pages ...int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages = append(b.pages, pages...)
	select {
	case b.hints <- struct{}{}:
	default:
	}
}

func (b *book) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *book) source() Source[int, int, string] {
	return Source[int, int, string]{
		Poll:  time.Second,
		Watch: func(context.Context) <-chan struct{} { return b.hints },
		Start: func(context.Context) (int, string, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.pages), "open", b.err
		},
		Read: func(_ context.Context, after int, state string, quiet bool) (Part[int, int, string], error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.reads++
			part := Part[int, int, string]{State: state}
			for i := after; i < len(b.pages); i++ {
				part.Entries = append(part.Entries, Entry[int, int]{End: i + 1, Value: b.pages[i], Weight: b.weight})
			}
			return part, b.err
		},
	}
}

func TestFollowersTakeEntriesFromOneReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tails Tails[int, int, string]
		b := &book{pages: []int{10, 11}, hints: make(chan struct{}, 1)}
		var work sync.WaitGroup
		var got [20][]int
		for i := range got {
			work.Go(func() {
				f := tails.Follow("b", b.source())
				defer f.Leave()
				for at := 2; at < 5; {
					v := f.Look(at)
					if v.Found {
						got[i], at = append(got[i], v.Entry), at+1
					} else if err := f.Wait(t.Context(), v, 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
		synctest.Wait()
		b.write(12)
		synctest.Wait()
		b.write(13, 14)
		work.Wait()
		for i, pages := range got {
			if len(pages) != 3 || pages[0] != 12 || pages[1] != 13 || pages[2] != 14 {
				t.Errorf("follower %d got %v", i, pages)
			}
		}
		if b.reads != 3 { // the first look, and one for each write
			t.Errorf("the log was read %d times", b.reads)
		}
		if left := tails.bytes.Load(); len(tails.all) != 0 || left != 0 {
			t.Errorf("%d tails and %d bytes are left", len(tails.all), left)
		}
	})
}

// Followers that are many get everything in order however fast it is written, and soon although
// nothing more comes; what is written while they are served is read at once.
func TestManyFollowersAndAFastWriter(t *testing.T) {
	const pages = 200
	synctest.Test(t, func(t *testing.T) {
		var tails Tails[int, int, string]
		b := &book{hints: make(chan struct{}, 1)}
		var work sync.WaitGroup
		for i := range 3 * manyCrowds * crowd {
			work.Go(func() {
				f := tails.Follow("b", b.source())
				defer f.Leave()
				for at := 0; at < pages; {
					v := f.Look(at)
					switch {
					case v.Found && v.Entry != at:
						t.Errorf("follower %d got page %d after %d", i, v.Entry, at)
						return
					case v.Found:
						at++
						if at%50 == 0 {
							time.Sleep(100 * time.Microsecond) // what it does with them
						}
					default:
						if err := f.Wait(t.Context(), v, 0); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		synctest.Wait()
		begun := time.Now()
		for i := range pages {
			b.write(i)
			time.Sleep(200 * time.Microsecond)
		}
		work.Wait()
		if late := time.Since(begun) - pages*200*time.Microsecond; late > time.Second/2 { // before the next poll
			t.Errorf("they had everything %v after the last page", late)
		}
		if b.reads > pages/2 {
			t.Errorf("the log was read %d times for %d pages", b.reads, pages)
		}
	})
}

// What a tail forgets, and what it cannot read, is for the followers to read.
func TestATailKeepsLittleAndStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tails Tails[int, int, string]
		b := &book{hints: make(chan struct{}, 1), weight: tailBytes / 4}
		f := tails.Follow("b", b.source())
		defer f.Leave()
		synctest.Wait()
		look := func(at int, found, current bool) {
			t.Helper()
			synctest.Wait()
			if v := f.Look(at); v.Found != found || v.Current != current {
				t.Errorf("at %d: found %t, current %t; want %t, %t", at, v.Found, v.Current, found, current)
			}
		}
		look(0, false, true)
		b.write(1, 2, 3, 4, 5, 6)
		look(1, false, false)
		look(2, true, false)
		look(6, false, true)
		f.Grow(5, 2*tailBytes) // the latest stays, whatever it weighs
		look(4, false, false)
		look(5, true, false)
		time.Sleep(2 * time.Second) // nobody without a delay needs it now
		look(5, false, false)
		look(6, false, true)
		b.fail(errors.New("broken"))
		b.write(7)
		look(6, false, false)
		look(7, false, false)
		b.fail(nil)
		time.Sleep(2 * time.Second)
		look(6, false, false)
		look(7, false, true)
	})
}

// A wait ends with its time and with its context, and leaves nothing behind.
func TestAWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tails Tails[int, int, string]
		b := &book{hints: make(chan struct{}, 1)}
		f, other := tails.Follow("b", b.source()), tails.Follow("b", b.source())
		defer f.Leave()
		defer other.Leave()
		synctest.Wait()
		begun := time.Now()
		if err := f.Wait(t.Context(), f.Look(0), 5*time.Second); err != nil || time.Since(begun) != 5*time.Second {
			t.Errorf("waited %v: %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Wait(ctx, f.Look(0), 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait ended with %v", err)
		}
		if n := len(f.t.waiting); n != 0 {
			t.Errorf("%d followers are on the list", n)
		}
		old := f.Look(0)
		b.write(1)
		synctest.Wait()
		if err := f.Wait(t.Context(), old, 0); err != nil {
			t.Errorf("a wait for what is there already: %v", err)
		}
	})
}
