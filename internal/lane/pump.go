package lane

import (
	"context"
	"runtime"
	"time"
)

// run reads the log until the last follower has left.
func (t *tail[P, E, S]) run(ctx context.Context, hints <-chan struct{}) {
	defer close(t.done)
	defer t.drop()
	t.hints = hints
	for quiet := true; ctx.Err() == nil; {
		more, err := t.look(ctx, quiet)
		if err != nil {
			t.reset(ctx)
		}
		if more {
			quiet = false
			continue
		}
		// A hint of anything that came after this read is in the channel, or will be.
		if quiet = t.pause(ctx, hints); quiet {
			t.drop()
		} else if t.many() {
			_ = Pause(ctx, headStart)
		}
	}
}

// many reports whether a hint wakes many crowds.
func (t *tail[P, E, S]) many() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) > manyCrowds*crowd
}

// pause waits for a hint, and reports whether none came for the time between two polls.
func (t *tail[P, E, S]) pause(ctx context.Context, hints <-chan struct{}) bool {
	timer := time.NewTimer(t.src.Poll)
	defer timer.Stop()
	select {
	case <-hints:
	case <-timer.C:
		return true
	case <-ctx.Done():
	}
	return false
}

// look reads once, and gives what it found to the followers.
func (t *tail[P, E, S]) look(ctx context.Context, quiet bool) (more bool, err error) {
	// Only this goroutine changes them.
	if !t.ready {
		end, state, err := t.src.Start(ctx)
		if err != nil {
			return false, err
		}
		t.publish(ctx, func() { t.ready, t.end, t.state = true, end, state })
	}
	part, err := t.src.Read(ctx, t.end, t.state, quiet)
	if err != nil {
		return false, err
	}
	if len(part.Entries) > 0 || part.Changed {
		t.publish(ctx, func() { t.addLocked(part) })
	}
	return part.More, nil
}

// reset is for a log that cannot be read, or is another one now: followers read it
// themselves, and get the reason, until the tail has started again.
func (t *tail[P, E, S]) reset(ctx context.Context) {
	if t.ready {
		t.publish(ctx, func() { t.ready = false; t.trimLocked(0) })
	}
}

// drop forgets the entries, which no follower without a delay needs any more.
func (t *tail[P, E, S]) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trimLocked(0)
}

// crowd is how many woken followers are at work at once. All of them at once would keep
// the processors from everything else, such as the answer to the append that woke them.
var crowd = 4 * runtime.GOMAXPROCS(0)

// patience is how long the others wait for followers that are at work, which may wait for
// their peers.
const patience = 5 * time.Millisecond

// manyCrowds are so many followers that those who append would notice them.
const manyCrowds = 4

// headStart is how long many crowds wait, before anything is read for them, for the answer to
// the append that woke them: it passes through several goroutines.
const headStart = 500 * time.Microsecond

// breather is the longest pause after one crowd.
const breather = time.Millisecond

// publish changes what followers see, and wakes those that wait, a few at a time. If they are
// many and something more was appended meanwhile, they get half of the time: an appender that
// waited for them would append less, and those that come later find more to take at once.
func (t *tail[P, E, S]) publish(ctx context.Context, change func()) {
	t.mu.Lock()
	change()
	t.version++
	waiting := t.waiting
	t.waiting = nil
	for _, f := range waiting {
		f.slot = -1
	}
	t.mu.Unlock()
	many := len(waiting) > manyCrowds*crowd
	for len(waiting) > 0 {
		runtime.Gosched() // behind whatever else is ready, as the append that has its answer now
		begun := time.Now()
		n := min(t.room(ctx), len(waiting))
		if many && len(t.hints) > 0 {
			_ = Pause(ctx, min(time.Since(begun), breather))
		}
		t.wake(waiting[:n])
		waiting = waiting[n:]
	}
}

// room waits until half of the crowd is done, or for as long as patience allows, and
// returns how many may be woken.
func (t *tail[P, E, S]) room(ctx context.Context) int {
	for {
		t.mu.Lock()
		n := crowd - t.working
		t.mu.Unlock()
		if 2*n >= crowd {
			return n
		}
		timer := time.NewTimer(patience)
		select {
		case <-t.rest:
		case <-timer.C:
			t.mu.Lock()
			t.round++ // those of the last one do not count any more
			t.working = 0
			t.mu.Unlock()
		case <-ctx.Done(): // which wakes everybody
			return crowd
		}
		timer.Stop()
	}
}

func (t *tail[P, E, S]) wake(some []*Follower[P, E, S]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range some {
		select {
		case f.wake <- struct{}{}:
		default: // it is awake
		}
		if f.round != t.round {
			f.round = t.round
			t.working++
		}
	}
}

// restedLocked is called when a follower has nothing more to do.
func (f *Follower[P, E, S]) restedLocked() {
	t := f.t
	if f.round != t.round {
		return
	}
	f.round = 0
	if t.working--; 2*t.working <= crowd {
		select {
		case t.rest <- struct{}{}:
		default:
		}
	}
}

// addLocked adds what was read.
func (t *tail[P, E, S]) addLocked(part Part[P, E, S]) {
	for _, e := range part.Entries {
		t.at[t.end] = t.first + len(t.entries)
		t.entries = append(t.entries, kept[P, E]{Entry: e, before: t.end})
		t.end = e.End
		t.weighLocked(e.Weight)
	}
	t.state = part.State
	// What was just read stays, whatever others have: every follower is about to ask for it.
	t.trimLocked(len(part.Entries))
}

func (t *tail[P, E, S]) weighLocked(bytes int) {
	t.bytes += bytes
	t.set.bytes.Add(int64(bytes))
}

// trimLocked forgets old entries until the limits are kept. With latest 0 it forgets all;
// otherwise as many of the latest ones stay as the limit of one tail allows, and at least
// one.
func (t *tail[P, E, S]) trimLocked(latest int) {
	n := 0
	for n < len(t.entries) {
		left := len(t.entries) - n
		over := t.bytes > tailBytes && left > 1 || t.set.bytes.Load() > totalBytes && left > latest
		if latest > 0 && !over {
			break
		}
		delete(t.at, t.entries[n].before)
		t.weighLocked(-t.entries[n].Weight)
		n++
	}
	clear(t.entries[:n])
	t.entries = t.entries[n:]
	t.first += n
}
