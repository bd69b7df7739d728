package checkpoint

import (
	"errors"
	"slices"
	"testing"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// resume forks a conversation at its latest save, as an agent does that continues a session
// in another one.
func resume(t *testing.T, store *conversation.Store, from, to string) *conversation.Conversation {
	t.Helper()
	c, err := store.Fork(t.Context(), from, 0, conversation.Info{ID: to})
	must(t, err)
	return c
}

// saysTurns compares the turns of a conversation, which is opened again.
func saysTurns(t *testing.T, store *conversation.Store, id string, want uint64) *conversation.Conversation {
	t.Helper()
	c, err := store.Open(t.Context(), id)
	must(t, err)
	if got := c.Head().Turns; got != want {
		t.Errorf("%s has %d turns, want %d", id, got, want)
	}
	return c
}

// resumed is a talk of two turns that another conversation continues.
func resumed(t *testing.T) (*fixture, *conversation.Store) {
	t.Helper()
	f, store, c, _ := talk(t)
	f.write("a", "0\n")
	say(f, c, 1, "one", "a", "1\n")
	say(f, c, 2, "two", "a", "2\n", "b", "2\n")
	say(f, c, 3, "lost", "a", "lost\n")
	f.rewind(RewindRequest{To: "turn:2"})
	next := resume(t, store, "talk", "next")
	say(f, next, 3, "three", "a", "3\n", "c", "3\n")
	say(f, next, 4, "four", "d", "4\n")
	return f, store
}

// What a conversation had before it was resumed is its own: a rewind takes both back, in
// one move, and an undo brings both.
func TestARewindGoesBackBehindWhereAConversationWasResumed(t *testing.T) {
	for _, to := range []string{"turn:1", "c2", "one"} {
		f, store := resumed(t)
		done := f.rewind(RewindRequest{To: to})
		f.expect(map[string]string{"a": "-rw-r--r-- 1\n"})
		if done.Plan.Partial() {
			t.Errorf("%s: left alone: %v", to, done.Plan.Left())
		}
		if done.Plan.Conversation != "next" || !slices.Equal(done.Operation.Origins, []string{"talk"}) {
			t.Errorf("%s: the rewind is of %q and %q", to, done.Plan.Conversation, done.Operation.Origins)
		}
		saysTurns(t, store, "next", 1)
		saysTurns(t, store, "talk", 2)
		must(t, undo(f))
		f.expect(map[string]string{"a": "-rw-r--r-- 3\n", "b": "-rw-r--r-- 2\n", "c": "-rw-r--r-- 3\n", "d": "-rw-r--r-- 4\n"})
		saysTurns(t, store, "next", 4)

		// It goes on from there in yet another conversation.
		f.rewind(RewindRequest{To: to})
		last := resume(t, store, "next", "last")
		say(f, last, 2, "other", "e", "5\n")
		f.rewind(RewindRequest{To: "before:turn:1"})
		f.expect(map[string]string{"a": "-rw-r--r-- 0\n"})
		saysTurns(t, store, "last", 0)
	}
}

// The outcome of such a rewind is a place of the conversation that continues the other one.
func TestARewindToWhereARewindWent(t *testing.T) {
	f, store := resumed(t)
	there := f.rewind(RewindRequest{To: "turn:1"})
	must(t, undo(f))
	back := f.rewind(RewindRequest{To: there.Record.Name()})
	f.expect(map[string]string{"a": "-rw-r--r-- 1\n"})
	saysTurns(t, store, "next", 1)
	f.rewind(RewindRequest{To: back.Saved.Name()})
	f.expect(map[string]string{"a": "-rw-r--r-- 3\n", "b": "-rw-r--r-- 2\n", "c": "-rw-r--r-- 3\n", "d": "-rw-r--r-- 4\n"})
	saysTurns(t, store, "next", 4)
}

func TestASharedTurnIsTakenBackAlone(t *testing.T) {
	f, _ := resumed(t)
	f.rewind(RewindRequest{OnlyTurn: 2})
	f.expect(map[string]string{"a": "-rw-r--r-- 3\n", "c": "-rw-r--r-- 3\n", "d": "-rw-r--r-- 4\n"})
	_, err := f.w.Plan(t.Context(), RewindRequest{OnlyTurn: 9})
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("turn 9: %v", err)
	}
}

// Two conversations that go on side by side after a fork keep their work apart, and what
// both go on from.
func TestForksSideBySideTakeBackTheirOwn(t *testing.T) {
	f, store := resumed(t)
	old := saysTurns(t, store, "talk", 2)
	say(f, old, 3, "beside", "e", "5\n")
	done := f.rewind(RewindRequest{To: "turn:1", Conversation: "next"})
	f.expect(map[string]string{"a": "-rw-r--r-- 3\n", "b": "-rw-r--r-- 2\n", "e": "-rw-r--r-- 5\n"})
	if len(done.Operation.Origins) > 0 || !done.Plan.Partial() {
		t.Errorf("the rewind is also of %q, and partial: %v", done.Operation.Origins, done.Plan.Partial())
	}
	saysTurns(t, store, "next", 1)
	saysTurns(t, store, "talk", 3)
	must(t, undo(f))
	saysTurns(t, store, "next", 4)
	f.rewind(RewindRequest{To: "turn:1", Conversation: "next", Scope: ConversationOnly})
	saysTurns(t, store, "next", 1)
}

// An origin that went on before its fork did keeps its work, too: a turn that it has ended or
// is at work on, and one of the number of a turn that both had.
func TestForksOfAnOriginThatWentOnFirst(t *testing.T) {
	begin := func(f *fixture, c *conversation.Conversation) {
		f.save(Request{Conversation: "talk", Root: c.Head().Root, MessageID: "three", Turn: 3, Side: Before})
	}
	for name, tt := range map[string]struct {
		goOn func(*testing.T, *fixture, *conversation.Conversation)
		left []string
	}{
		"ended": {func(_ *testing.T, f *fixture, c *conversation.Conversation) { say(f, c, 3, "beside", "e", "5\n") }, []string{"b", "e"}},
		"at work": {func(_ *testing.T, f *fixture, c *conversation.Conversation) {
			begin(f, c)
			f.write("e", "5\n")
		}, []string{"b", "c", "e"}}, // who made c is unknown
		"another way": {func(t *testing.T, f *fixture, c *conversation.Conversation) {
			_, err := c.Rewind(t.Context(), 1, nil)
			must(t, err)
			say(f, c, 2, "instead", "e", "5\n")
		}, []string{"b", "e"}},
		"rewound and back": {func(t *testing.T, f *fixture, c *conversation.Conversation) {
			say(f, c, 3, "beside", "e", "5\n")
			f.rewind(RewindRequest{To: "turn:2"})
			must(t, undo(f))
		}, []string{"b", "e"}},
		"rewound": {func(t *testing.T, f *fixture, c *conversation.Conversation) {
			say(f, c, 3, "beside", "e", "5\n")
			f.rewind(RewindRequest{To: "turn:2"})
		}, nil},
		"rewound at work": {func(t *testing.T, f *fixture, c *conversation.Conversation) {
			begin(f, c)
			f.rewind(RewindRequest{To: "turn:2"})
		}, []string{"c"}},
	} {
		f, store, c, _ := talk(t)
		say(f, c, 1, "one", "a", "1\n")
		say(f, c, 2, "two", "b", "2\n")
		next := resume(t, store, "talk", "next")
		tt.goOn(t, f, c)
		say(f, next, 3, "three", "c", "3\n")
		p := f.plan(RewindRequest{To: "turn:1", Conversation: "next"})
		var left []string
		for _, a := range p.Left() {
			left = append(left, a.Path)
		}
		same(t, name+": it leaves", left, tt.left)
		if joined := len(p.origins) > 0; joined != !slices.Contains(tt.left, "b") {
			t.Errorf("%s: it is also of %q", name, p.origins)
		}
	}
}

// A turn that the origin had after the fork, or that a rewind left behind there, is none of
// the fork.
func TestTurnsOfTheOriginAfterAFork(t *testing.T) {
	f, store := resumed(t)
	for ref, turn := range map[string]uint64{"turn:3": 3, "turn:2": 2, "before:turn:3": 3} {
		rec, err := f.w.Resolve(t.Context(), ref, "next")
		must(t, err)
		if rec.Turn != turn || rec.Turn > 2 && rec.Conversation != "next" || rec.MessageID == "lost" {
			t.Errorf("%s is %s of %s", ref, rec.Place(), rec.Conversation)
		}
	}
	// The origin goes another way from its first turn. The fork still has the second one.
	old := saysTurns(t, store, "talk", 2)
	_, err := old.Rewind(t.Context(), 1, nil)
	must(t, err)
	say(f, old, 2, "instead", "e", "5\n")
	if rec, err := f.w.Resolve(t.Context(), "turn:2", "next"); err != nil || rec.MessageID != "two" {
		t.Errorf("turn 2 is %v, %v", rec, err)
	}
	if rec, err := f.w.Resolve(t.Context(), "turn:2", "talk"); err != nil || rec.MessageID != "instead" {
		t.Errorf("turn 2 of the origin is %v, %v", rec, err)
	}
	if _, err := f.w.Resolve(t.Context(), "turn:5", "next"); !errors.Is(err, ErrNotFound) {
		t.Errorf("turn 5: %v", err)
	}
}

// An origin that was removed or cannot be read keeps its turns; those of the fork itself are
// taken back as ever.
func TestRewindWithoutAnOrigin(t *testing.T) {
	for name, lose := range map[string]func(*fixture, *conversation.Store) error{
		"removed": func(f *fixture, store *conversation.Store) error { return store.Delete(t.Context(), "talk", nil) },
		"damaged": func(f *fixture, _ *conversation.Store) error {
			return f.rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: keyspace.Conversation("talk"), Value: []byte("?")}}})
		},
	} {
		f, store := resumed(t)
		must(t, lose(f, store))
		f.rewind(RewindRequest{To: "turn:3"})
		f.expect(map[string]string{"a": "-rw-r--r-- 3\n", "b": "-rw-r--r-- 2\n", "c": "-rw-r--r-- 3\n"})
		saysTurns(t, store, "next", 3)
		f.rewind(RewindRequest{To: "before:turn:3"})
		f.expect(map[string]string{"a": "-rw-r--r-- 2\n", "b": "-rw-r--r-- 2\n"})
		if _, err := f.w.Plan(t.Context(), RewindRequest{To: "c2"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
