package lane

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Source is a log that tails read. P is a place in it, E an entry, S what is known about
// the log besides its entries.
type Source[P comparable, E, S any] struct {
	// Watch returns hints of new entries until ctx is done.
	Watch func(ctx context.Context) <-chan struct{}
	// Start returns the end of the log and its state.
	Start func(ctx context.Context) (P, S, error)
	// Read returns what follows a place. quiet means that there was no hint for a while,
	// which is when to look for what hints do not announce. An error, such as one for a
	// place that the log does not have any more, makes the tail start again.
	Read func(ctx context.Context, after P, state S, quiet bool) (Part[P, E, S], error)
	// Poll is how often the log is read without a hint.
	Poll time.Duration
}

// Part is what a Source read.
type Part[P comparable, E, S any] struct {
	Entries []Entry[P, E]
	State   S
	// Changed means that followers at the end must see the state, even without entries.
	Changed bool
	// More means that there is more to read now.
	More bool
}

// Entry is one entry of a log.
type Entry[P comparable, E any] struct {
	// End is the place after it.
	End   P
	Value E
	// Weight is about how many bytes of memory it takes.
	Weight int
}

// Limits of what tails keep. A follower that needs more reads the log by itself.
const (
	tailBytes  = 4 << 20  // of one tail, but always the latest entry
	totalBytes = 64 << 20 // of all tails of a set
)

// Tails holds the ends of logs in memory while they are followed, once for all followers
// of a log: one goroutine waits, polls and reads, and the followers take its entries.
// What is too old to be kept is for the followers to read. They also read the log
// themselves while the goroutine cannot: a tail saves work and decides nothing.
//
// The zero value is ready for use. It is safe for concurrent use.
type Tails[P comparable, E, S any] struct {
	mu    sync.Mutex // guards all, and users of every tail
	all   map[string]*tail[P, E, S]
	bytes atomic.Int64 // of all tails
}

// tail is the end of one log.
type tail[P comparable, E, S any] struct {
	set   *Tails[P, E, S]
	name  string
	src   Source[P, E, S]
	users int
	stop  context.CancelFunc
	done  chan struct{}   // closed when the goroutine has ended
	hints <-chan struct{} // has a value if something came since the last read; for the goroutine

	mu      sync.Mutex // guards what follows
	ready   bool       // end and state are known
	end     P
	state   S
	version uint64 // counts changes of what is guarded here
	entries []kept[P, E]
	first   int       // number of entries[0]
	at      map[P]int // number of the entry after a place
	bytes   int
	waiting []*Follower[P, E, S] // those that have everything
	working int                  // followers that were woken in this round, and are not done
	round   uint64               // from 1
	rest    chan struct{}        // has a value when few are working
}

type kept[P comparable, E any] struct {
	Entry[P, E]
	before P
}

// Follower is one reader of a tail. One goroutine may use it.
type Follower[P comparable, E, S any] struct {
	t    *tail[P, E, S]
	wake chan struct{}
	// Guarded by the mu of the tail:
	slot  int    // its place on the list of those that wait, or -1
	round uint64 // in which it was woken; 0 if it is not at work
}

// View is what a tail says about a place.
type View[E, S any] struct {
	// Entry is the one after the place, if it is Found.
	Entry E
	Found bool
	// Current means that the place is the end of the log as it was last read. Neither
	// Found nor Current means that the follower must read the log.
	Current bool
	// State belongs to that end.
	State S

	version uint64
}

// Follow joins the tail of a log. The first follower starts it with its source, the last
// one that calls Leave ends it.
func (s *Tails[P, E, S]) Follow(name string, src Source[P, E, S]) *Follower[P, E, S] {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.all[name]
	if t == nil {
		if s.all == nil {
			s.all = make(map[string]*tail[P, E, S])
		}
		// It belongs to all followers, so it ends with none of their contexts.
		ctx, cancel := context.WithCancel(context.Background())
		t = &tail[P, E, S]{set: s, name: name, src: src, stop: cancel, done: make(chan struct{}), at: make(map[P]int), round: 1, rest: make(chan struct{}, 1)}
		s.all[name] = t
		// Watching begins before anybody reads, so that no entry is missed.
		go t.run(ctx, src.Watch(ctx))
	}
	t.users++
	return &Follower[P, E, S]{t: t, wake: make(chan struct{}, 1), slot: -1}
}

// Leave ends the use of a follower.
func (f *Follower[P, E, S]) Leave() {
	t, s := f.t, f.t.set
	t.mu.Lock()
	f.restedLocked()
	t.mu.Unlock()
	s.mu.Lock()
	t.users--
	last := t.users == 0
	if last {
		delete(s.all, t.name)
	}
	s.mu.Unlock()
	if last {
		t.stop()
		<-t.done
	}
}

// Look returns the entry after a place, or whether the place is the end.
func (f *Follower[P, E, S]) Look(after P) View[E, S] {
	t := f.t
	t.mu.Lock()
	defer t.mu.Unlock()
	v := View[E, S]{version: t.version, State: t.state, Current: t.ready && t.end == after}
	if i, ok := t.at[after]; ok {
		v.Entry, v.Found = t.entries[i-t.first].Value, true
	}
	return v
}

// Wait returns when the tail has changed since a view of it, after a time if d is positive,
// and when ctx is done.
func (f *Follower[P, E, S]) Wait(ctx context.Context, since View[E, S], d time.Duration) error {
	if !f.enlist(since.version) {
		return ctx.Err()
	}
	defer f.unlist()
	if d > 0 {
		return Wait(ctx, f.wake, d)
	}
	select {
	case <-f.wake:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// enlist reports whether the follower has to wait, and puts it on the list if so.
func (f *Follower[P, E, S]) enlist(version uint64) bool {
	select {
	case <-f.wake: // left by a wait that ended otherwise
	default:
	}
	f.t.mu.Lock()
	defer f.t.mu.Unlock()
	f.restedLocked()
	if f.t.version != version {
		return false
	}
	f.slot = len(f.t.waiting)
	f.t.waiting = append(f.t.waiting, f)
	return true
}

// unlist takes a follower that was not woken off the list.
func (f *Follower[P, E, S]) unlist() {
	t := f.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.slot < 0 {
		return
	}
	last := len(t.waiting) - 1
	t.waiting[f.slot] = t.waiting[last]
	t.waiting[f.slot].slot = f.slot
	t.waiting[last] = nil
	t.waiting, f.slot = t.waiting[:last], -1
}

// Grow adds to the weight of the entry after a place, which holds more than it did.
func (f *Follower[P, E, S]) Grow(after P, bytes int) {
	t := f.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if i, ok := t.at[after]; ok {
		t.entries[i-t.first].Weight += bytes
		t.weighLocked(bytes)
		t.trimLocked(1)
	}
}
