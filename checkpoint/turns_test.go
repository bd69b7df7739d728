package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"
)

// held makes requests of a turn that a process holds.
type held struct {
	conv string
	turn uint64
	by   Holder
}

func (h held) at(side Side) Request {
	return Request{Conversation: h.conv, Turn: h.turn, Side: side, Holder: h.by, Auto: true}
}

// hold returns a turn that the process with a number holds.
func hold(conv string, turn uint64, pid int) held {
	return held{conv, turn, Holder{ID: fmt.Sprint(pid), Processes: []Process{{PID: pid, Boot: "b"}}}}
}

// processes make a fixture see the processes with these numbers, and no others.
func (f *fixture) processes(pids ...int) {
	f.opts.life = func(p Process) Life {
		if p.Boot == "b" && slices.Contains(pids, p.PID) {
			return Alive
		}
		return Gone
	}
	f.reopen()
}

// Two agents that work at the same time and save after each burst of changes do
// not undo each other, nor what the user does meanwhile.
func TestTurnsThatOverlap(t *testing.T) {
	f := newFixture(t)
	f.processes(1, 2)
	a, b := hold("A", 1, 1), hold("B", 1, 2)
	f.write("a", "0\n", "b", "0\n", "user", "0\n")
	a1 := f.save(a.at(Before))
	f.write("early", "A\n")
	b1 := f.save(b.at(Before))
	f.write("a", "A\n")
	f.save(a.at(NoSide))
	f.write("b", "B\n", "new-b", "B\n")
	f.save(b.at(NoSide))
	f.write("user", "user\n")
	f.save(a.at(NoSide))
	f.save(a.at(After))
	f.write("late", "B\n")
	f.save(b.at(After))
	f.write("user2", "user\n")
	all := []string{"keep a", "keep b", "delete early", "keep late", "keep new-b", "keep user", "keep user2"}
	same(t, "A", lines(f.plan(RewindRequest{To: a1.ID})), all)
	p := f.plan(RewindRequest{To: b1.ID})
	same(t, "B", lines(p), []string{"keep a", "keep b", "delete late", "keep new-b", "keep user", "keep user2"})
	for i, want := range []WriterClass{BySeveral, BySeveral, ByConversation, BySeveral, BySeveral, ByUser} {
		if w := p.Actions[i].Writer; w.Class != want || want == BySeveral && !slices.Equal(w.Among, []string{"A", "B"}) {
			t.Errorf("%s was written by %+v, want %s", p.Actions[i].Path, w, want)
		}
	}
}

// A conversation that is known to work without a turn takes nothing from others: what may
// be its work is nobody's until it says so, and what was written while nobody else worked
// is the user's.
func TestConversationBesideTurns(t *testing.T) {
	f := newFixture(t)
	beside := func(req Request) Request {
		req.Beside = func(context.Context) ([]string, error) { return []string{"A"}, nil }
		return req
	}
	f.write("own", "0\n")
	first := f.save(beside(Request{Conversation: "B", Turn: 1, Side: Before}))
	f.write("own", "B\n", "a", "A\n", "shell", "?\n")
	f.save(beside(Request{Conversation: "B", Turn: 1, Side: After, Touched: []string{"own"}}))
	f.save(Request{Conversation: "A", Touched: []string{"a"}, Paths: []string{"a"}})
	f.write("user", "user\n")
	f.save(beside(Request{Conversation: "B", Turn: 2, Side: Before}))
	want := map[string][]string{
		"A": {"delete a", "keep own", "keep shell", "keep user"},
		"B": {"keep a", "restore own", "keep shell", "keep user"},
	}
	for conv, actions := range want {
		same(t, conv, lines(f.plan(RewindRequest{To: first.ID, Conversation: conv})), actions)
	}
}

// A checkpoint that is made by hand does not end a turn, and neither does
// a rewind.
func TestTurnOutlastsCheckpoints(t *testing.T) {
	for name, between := range map[string]func(f *fixture){
		"by hand":          func(f *fixture) { f.save(Request{Label: "by hand"}) },
		"of the same":      func(f *fixture) { f.save(Request{Conversation: "A", Label: "by hand"}) },
		"of the same turn": func(f *fixture) { f.save(Request{Conversation: "A", Turn: 1, Auto: true}) },
		"of another":       func(f *fixture) { f.save(Request{Conversation: "C"}) },
		"rewind":           func(f *fixture) { f.rewind(RewindRequest{To: "c1", Conversation: "A", Paths: []string{"a"}}) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("a", "0\n")
			f.before("A", 1)
			between(f)
			b := f.before("B", 1)
			f.write("a", "A\n")
			f.after("B", 1)
			same(t, "B", lines(f.plan(RewindRequest{To: b.ID, Conversation: "B"})), []string{"keep a"})
		})
	}
}

// A turn counts as long as its process lives, however long ago it began.
func TestTurnGoesOnForLong(t *testing.T) {
	f := newFixture(t)
	c := newClock()
	f.opts.Now = c.Now
	f.processes(1, 2)
	f.write("a", "0\n", "b", "0\n")
	f.save(hold("A", 1, 1).at(Before))
	c.advance(3 * time.Hour)
	for range originDepth + 10 {
		f.save(Request{Paths: []string{"b"}})
	}
	c.advance(3 * time.Hour)
	b := f.save(hold("B", 1, 2).at(Before))
	f.write("a", "A\n", "b", "B\n")
	f.save(hold("B", 1, 2).at(After))
	same(t, "B", lines(f.plan(RewindRequest{To: b.ID})), []string{"keep a", "keep b"})
}

// A turn whose process was killed ended with its last checkpoint; later that stays
// so, whatever has the process's number by then.
func TestTurnEndsWithItsProcess(t *testing.T) {
	f := newFixture(t)
	f.processes(1)
	a := hold("A", 1, 1)
	f.write("a", "0\n")
	c1 := f.save(a.at(Before))
	f.write("a", "1\n")
	f.save(a.at(NoSide))
	f.write("seen", "A\n")
	f.save(Request{Label: "by hand, while it lives"})
	f.processes()
	f.write("user", "mine\n")
	want := []string{"restore a", "delete seen", "keep user"}
	same(t, "killed", lines(f.plan(RewindRequest{To: c1.ID})), want)
	b := f.before("B", 1)
	f.write("b", "B\n")
	f.processes(1)
	same(t, "later", lines(f.plan(RewindRequest{To: c1.ID, Conversation: "A"})), []string{"restore a", "keep b", "delete seen", "keep user"})
	same(t, "B", lines(f.plan(RewindRequest{To: b.ID})), []string{"delete b"})
	f.rewind(RewindRequest{To: c1.ID, Conversation: "A"})
	if f.read("user") != "mine\n" || f.read("b") != "B\n" {
		t.Error("files of others changed")
	}
}

// What changed after the last evidence of a killed turn may be the user's or the turn's. It
// is left alone unless it is named, and nobody is called its author.
func TestChangedAfterALostTurn(t *testing.T) {
	f := newFixture(t)
	f.processes(1)
	a := hold("A", 1, 1)
	f.write("a", "0\n")
	c1 := f.save(a.at(Before))
	f.write("a", "1\n")
	f.save(a.at(NoSide))
	f.processes()
	f.write("whose", "?\n")
	b := f.before("B", 1)
	if w := b.Writer(); w.Class != ByUserOrLost || !slices.Equal(w.Among, []string{"A"}) {
		t.Errorf("the change is of %+v", w)
	}
	f.write("b", "B\n")
	f.after("B", 1)
	f.write("user", "mine\n")
	if w := f.before("B", 2).Writer(); w.Class != ByUser {
		t.Errorf("a later change is of %+v", w)
	}
	p := f.plan(RewindRequest{To: c1.ID, Conversation: "A"})
	same(t, "A", lines(p), []string{"restore a", "keep b", "keep user", "keep whose"})
	if a := p.Actions[3]; a.Why != WhyUnknown || a.Reason != "created after an interrupted turn, by it or by you" {
		t.Errorf("%s is kept because %s: %s", a.Path, a.Why, a.Reason)
	}
	same(t, "named", lines(f.plan(RewindRequest{To: c1.ID, Conversation: "A", Paths: []string{"whose"}})), []string{"conflict whose"})
	same(t, "named by B", lines(f.plan(RewindRequest{To: b.ID, Conversation: "B", Paths: []string{"whose"}})), nil)
}

// A turn that begins in a process of another one, which has more, takes its work over. Turns of
// the same process, such as sessions of one server, stay rivals.
func TestTurnInsideAnother(t *testing.T) {
	f := newFixture(t)
	f.processes(1, 2)
	outer, inner, rival := hold("outer", 1, 1), hold("inner", 1, 2), hold("rival", 1, 2)
	outer.by.Processes = append(outer.by.Processes, inner.by.Processes...)
	c1 := f.save(outer.at(Before))
	f.write("before", "outer\n")
	f.save(inner.at(Before))
	f.write("during", "inner\n")
	f.save(inner.at(After))
	f.write("between", "user\n")
	if open, err := f.w.AtWork(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("still at work: %+v, %v", open, err)
	}
	f.save(inner.at(Before))
	f.save(rival.at(Before))
	if open, err := f.w.AtWork(t.Context()); err != nil || len(open) != 2 {
		t.Errorf("at work: %+v, %v, want both sessions of the process", open, err)
	}
	same(t, "outer", lines(f.plan(RewindRequest{To: c1.ID, Conversation: "outer"})), []string{"delete before", "keep between", "keep during"})
	same(t, "inner", lines(f.plan(RewindRequest{To: c1.ID, Conversation: "inner"})), []string{"keep before", "keep between", "delete during"})
}

// What changed while one turn went on and another one was killed is nobody's; what
// changed afterwards is not in doubt.
func TestTurnIsKilledBesideAnother(t *testing.T) {
	f := newFixture(t)
	f.processes(1, 2)
	a, b := hold("A", 1, 1), hold("B", 1, 2)
	f.write("base", "0\n")
	f.save(a.at(Before))
	b1 := f.save(b.at(Before))
	f.write("last-of-a", "A\n")
	f.processes(2)
	f.save(b.at(NoSide))
	f.write("b", "B\n")
	f.save(b.at(After))
	same(t, "B", lines(f.plan(RewindRequest{To: b1.ID})), []string{"delete b", "keep last-of-a"})
}

// An agent that is not a process we know is at work while it makes checkpoints, and
// for an hour after the last.
func TestTurnWithoutProcess(t *testing.T) {
	f := newFixture(t)
	c := newClock()
	f.opts.Now = c.Now
	f.reopen()
	f.write("a", "0\n")
	a1 := f.before("A", 1)
	for i := range 4 {
		c.advance(50 * time.Minute)
		f.write("a", fmt.Sprintln(i))
		f.save(Request{Conversation: "A", Turn: 1, Auto: true})
	}
	c.advance(50 * time.Minute)
	f.write("still", "A\n")
	f.save(Request{})
	c.advance(20 * time.Minute)
	f.write("user", "mine\n")
	same(t, "A", lines(f.plan(RewindRequest{To: a1.ID})), []string{"restore a", "delete still", "keep user"})
}

// The next turn ends one that never ended; what changed in between is the user's.
func TestNextTurnEndsTheOneBefore(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n")
	c1 := f.before("A", 1)
	f.write("a", "1\n")
	f.save(Request{Conversation: "A", Turn: 1, Auto: true})
	f.write("user", "mine\n")
	f.before("A", 2)
	f.write("b", "2\n")
	f.after("A", 2)
	f.write("user2", "mine\n")
	p := f.plan(RewindRequest{To: c1.ID})
	same(t, "A", lines(p), []string{"restore a", "delete b", "keep user", "keep user2"})
	if a, b := p.Actions[0].Writer.Turn, p.Actions[1].Writer.Turn; a != 1 || b != 2 {
		t.Errorf("written in turns %d and %d, want 1 and 2", a, b)
	}
	// The end of an earlier turn, which went on in the background, ends no later one.
	f.before("A", 3)
	f.after("A", 2)
	f.before("B", 1)
	f.write("c", "3\n")
	f.after("B", 1)
	p = f.plan(RewindRequest{To: c1.ID, Conversation: "B"})
	same(t, "B", lines(p), []string{"keep a", "keep b", "keep c", "keep user", "keep user2"})
}

// Two processes work on one conversation: what they change is its work, but of no
// turn for sure.
func TestOneConversationTwice(t *testing.T) {
	f := newFixture(t)
	f.processes(1, 2)
	a, b := hold("A", 1, 1), hold("A", 2, 2)
	f.write("base", "0\n")
	c1 := f.save(a.at(Before))
	f.save(b.at(Before))
	f.write("both", "?\n")
	f.save(b.at(After))
	f.write("a", "A\n")
	f.save(Request{Label: "by hand"}) // the first is still at work
	f.save(a.at(After))
	f.write("user", "mine\n")
	same(t, "A", lines(f.plan(RewindRequest{To: c1.ID})), []string{"delete a", "delete both", "keep user"})
	same(t, "turn 1", lines(f.plan(RewindRequest{Conversation: "A", OnlyTurn: 1})), []string{"delete a", "keep both"})
	same(t, "turn 2", lines(f.plan(RewindRequest{Conversation: "A", OnlyTurn: 2})), []string{"keep both"})
}

// What two conversations say that they wrote is neither's.
func TestContestedClaim(t *testing.T) {
	f := newFixture(t)
	f.write("x", "0\n", "a", "0\n")
	a1 := f.before("A", 1)
	b1 := f.before("B", 1)
	f.write("x", "A, then B\n", "a", "A\n")
	f.save(Request{Conversation: "A", Turn: 1, Side: After, Touched: []string{"x", "a"}})
	same(t, "A", lines(f.plan(RewindRequest{To: a1.ID})), []string{"restore a", "restore x"})
	f.save(Request{Conversation: "B", Turn: 1, Side: After, Touched: []string{"x"}})
	same(t, "A", lines(f.plan(RewindRequest{To: a1.ID})), []string{"restore a", "keep x"})
	same(t, "B", lines(f.plan(RewindRequest{To: b1.ID, Conversation: "B"})), []string{"keep a", "keep x"})
}

// A turn that is let go without a checkpoint has ended, and a process can join one
// that goes on.
func TestHoldAndRelease(t *testing.T) {
	f := newFixture(t)
	f.processes(1, 3)
	a := hold("A", 1, 1)
	f.write("a", "0\n")
	c1 := f.save(a.at(Before))
	must(t, f.w.Hold(t.Context(), "A", Holder{ID: a.by.ID, Processes: []Process{{PID: 3, Boot: "b", Command: "child"}}}))
	f.processes(3)
	f.write("a", "A\n")
	open, err := f.w.AtWork(t.Context())
	must(t, err)
	if len(open) != 1 || open[0].Began != c1.ID || open[0].Holder.Processes[1].Command != "child" {
		t.Errorf("at work: %+v, want the turn with its child", open)
	}
	same(t, "while the child lives", lines(f.plan(RewindRequest{To: c1.ID})), []string{"restore a"})
	must(t, f.w.Release(t.Context(), "A", a.by))
	if open, err = f.w.AtWork(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("at work after release: %+v, %v", open, err)
	}
	same(t, "released", lines(f.plan(RewindRequest{To: c1.ID})), []string{"keep a"})
	if err := f.w.Release(t.Context(), "A", a.by); !errors.Is(err, ErrNotFound) {
		t.Errorf("released twice: %v", err)
	}
	b := f.before("B", 1) // the lost turn is gone after this
	f.write("b", "B\n")
	f.after("B", 1)
	same(t, "B", lines(f.plan(RewindRequest{To: b.ID})), []string{"delete b"})
}

// The checkpoint that a turn began with is kept as long as the turn goes on: a rewind that
// takes it back needs it.
func TestRetentionKeepsWhereATurnBegan(t *testing.T) {
	f := newFixture(t)
	c := newClock()
	f.opts.Now = c.Now
	f.processes(1)
	c1 := f.save(hold("A", 1, 1).at(Before))
	c.advance(3 * time.Hour)
	f.save(Request{})
	for _, want := range []Held{HeldTurn, ""} {
		all, err := f.w.s.Retainable(t.Context(), nil)
		must(t, err)
		i := slices.IndexFunc(all, func(r Retained) bool { return r.ID == c1.ID })
		if got := all[i].Held; got != want {
			t.Errorf("held since %q, want %q", got, want)
		}
		f.processes() // it is killed
	}
}

// Records of releases that did not keep which turns were at work say it by their
// sides, for an hour after the last of them.
func TestOldRecordsOfTurns(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n")
	f.before("A", 1)
	c2 := f.before("B", 1)
	f.write("a", "?\n")
	f.save(Request{Conversation: "B", Turn: 1, Auto: true})
	f.write("b", "B\n")
	f.age()
	same(t, "B, at once", lines(f.plan(RewindRequest{To: c2.ID})), []string{"keep a", "keep b"})
	f.after("A", 1)
	f.write("c", "B\n")
	f.after("B", 1)
	same(t, "B", lines(f.plan(RewindRequest{To: c2.ID})), []string{"keep a", "keep b", "delete c"})
}

// age makes all rows what an earlier release stored.
func (f *fixture) age() {
	f.t.Helper()
	for rec, err := range f.w.List(f.t.Context(), nil) {
		must(f.t, err)
		rec.unaware = true
		data, err := rec.encode()
		must(f.t, err)
		must(f.t, f.setRow(rec.ID, data))
	}
	st, err := f.w.load(f.t.Context())
	must(f.t, err)
	st.row.Turns = nil
	must(f.t, f.setWorkspace(st))
}

// A process is alive until it ends, also before it was waited for; one of another
// start of the system is gone, and one of another namespace out of sight.
func TestProcessLife(t *testing.T) {
	me, ok := ProcessOf(os.Getpid(), "this test")
	if !ok {
		t.Skip("processes cannot be told apart here")
	}
	if got := me.Life(); got != Alive {
		t.Errorf("this process: %v, want alive", got)
	}
	for what, p := range map[string]Process{
		"number given again": {PID: me.PID, Start: me.Start + 1, Boot: me.Boot, Namespace: me.Namespace},
		"other boot":         {PID: me.PID, Start: me.Start, Boot: "other", Namespace: me.Namespace},
	} {
		if got := p.Life(); got != Gone {
			t.Errorf("%s: %v, want gone", what, got)
		}
	}
	away := me
	away.Namespace = "pid:[1]"
	if got := away.Life(); got != Unknown {
		t.Errorf("other namespace: %v, want unknown", got)
	}
	cmd := exec.Command("cat")
	if runtime.GOOS == "windows" {
		cmd = exec.Command("cmd", "/c", "set /p x=")
	}
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	child, _ := ProcessOf(cmd.Process.Pid, "cat")
	if got := child.Life(); got != Alive {
		t.Errorf("child: %v, want alive", got)
	}
	must(t, in.Close())
	if _, err := out.Read(make([]byte, 1)); err == nil { // it closes its output as it ends
		t.Error("cat said something")
	}
	must(t, cmd.Wait())
	if got := child.Life(); got != Gone {
		t.Errorf("child that ended: %v, want gone", got)
	}
}

// A command that started an agent and waits for it has what it changed before, the agent has
// its turn, and nobody has what changed before the command is known to go on.
func TestTurnBeginsWithinAnother(t *testing.T) {
	f := newFixture(t)
	f.processes(1, 2)
	run, agent := hold("run", 1, 1), hold("agent", 1, 2)
	agent.by.Within = []string{"1"}
	f.save(run.at(Before))
	f.write("before.txt", "run")
	f.save(agent.at(Before))
	f.write("agent.txt", "agent")
	f.save(agent.at(After))
	f.write("gap.txt", "anybody")
	next := run.at(Before)
	next.Turn, next.Beside = 2, func(context.Context) ([]string, error) { return []string{"run"}, nil }
	f.save(next)
	f.write("after.txt", "run")
	next = run.at(After)
	next.Turn = 2
	f.save(next)
	for conv, want := range map[string][]string{"run": {"after.txt", "before.txt"}, "agent": {"agent.txt"}} {
		p, err := f.w.Plan(t.Context(), RewindRequest{To: "c1", Conversation: conv, Scope: FilesOnly})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range p.Actions {
			if a.Changes() {
				got = append(got, a.Path)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", conv, got, want)
		}
	}
}
