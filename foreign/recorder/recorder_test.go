package recorder_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/recorder"
	"github.com/stet-dev/stet/foreign/spool"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/workspace"
)

// silent is an agent without a record.
type silent struct{ foreign.Adapter }

func (silent) Name() string { return "silent" }

func (silent) SessionAt(context.Context, foreign.Host, string) iter.Seq2[foreign.Session, error] {
	return func(func(foreign.Session, error) bool) {}
}

func (s silent) Sessions(ctx context.Context, h foreign.Host) iter.Seq2[foreign.Session, error] {
	return s.SessionAt(ctx, h, "")
}

type fixture struct {
	t       *testing.T
	dir     string
	service *checkpoint.Service
	r       *recorder.Recorder
}

func newFixture(t *testing.T) *fixture {
	blobs := memblob.New()
	rows := memkv.New(blobs)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, dir: dir, service: checkpoint.New(blobs, rows, &checkpoint.Options{IndexDir: t.TempDir()})}
	f.r = &recorder.Recorder{
		Adapter: silent{}, Blobs: blobs, Rows: rows, Spool: t.TempDir(),
		Space: func(ctx context.Context, dir string) (*checkpoint.Workspace, error) { return f.service.Open(ctx, dir) },
	}
	return f
}

// event reports an event of a session, as the hook client does.
func (f *fixture) event(session string, e foreign.Event) recorder.Outcome {
	f.t.Helper()
	e.Session, e.Workspace = session, f.dir
	if err := spool.Open(f.r.Spool, "silent", session).Add("x", e, time.Now()); err != nil {
		f.t.Fatal(err)
	}
	out, err := f.r.Record(context.Background(), e)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

func (f *fixture) prompt(session, text string) {
	f.event(session, foreign.Event{Kind: foreign.TurnStart, Prompt: text})
}
func (f *fixture) stop(session string) recorder.Outcome {
	return f.event(session, foreign.Event{Kind: foreign.TurnEnd})
}

// edit writes a file and reports it as an edit tool does.
func (f *fixture) edit(session, name, content string) {
	f.write(name, content)
	f.event(session, foreign.Event{Kind: foreign.ToolEnd, Call: &foreign.Call{Tool: foreign.EditTool, Paths: []string{filepath.Join(f.dir, name)}}})
}

func (f *fixture) write(name, content string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// rewind takes back what a conversation did, files only.
func (f *fixture) rewind(session, ref string) {
	f.t.Helper()
	ctx := context.Background()
	space, err := f.service.Open(ctx, f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	defer space.Close()
	plan, err := space.Plan(ctx, checkpoint.RewindRequest{To: ref, Conversation: session, Scope: checkpoint.FilesOnly, Choice: checkpoint.KeepMine})
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := space.Rewind(ctx, plan.Request(), plan.Token); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) want(name, content string) {
	f.t.Helper()
	got, err := os.ReadFile(filepath.Join(f.dir, name))
	if content == "" && err == nil {
		f.t.Errorf("%s is there: %q", name, got)
	}
	if content != "" && string(got) != content {
		f.t.Errorf("%s has %q, want %q (%v)", name, got, content, err)
	}
}

func TestTurnsAreTakenBack(t *testing.T) {
	f := newFixture(t)
	f.write("main.go", "v0")
	f.prompt("s", "one")
	f.edit("s", "main.go", "v1")
	f.write("shell.txt", "made by a command")
	if out := f.stop("s"); out.Checkpoint == nil || out.Checkpoint.Side != checkpoint.After || out.Checkpoint.Turn != 1 {
		t.Errorf("got %+v", out)
	}
	f.rewind("s", "before:turn:1")
	f.want("main.go", "v0")
	f.want("shell.txt", "")
}

// The agent may go to another directory in a turn, which may be another workspace. The turn
// ends where it began.
func TestATurnEndsWhereItBegan(t *testing.T) {
	f := newFixture(t)
	other, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f.write("main.go", "v0")
	f.prompt("s", "one")
	f.edit("s", "main.go", "v1")
	f.write("shell.txt", "made by a command")
	began := f.dir
	f.dir = other
	f.write("theirs.txt", "of another project")
	out := f.stop("s")
	f.dir = began
	if out.Checkpoint == nil || out.Checkpoint.Side != checkpoint.After || out.Checkpoint.Turn != 1 {
		t.Fatalf("the end gives %+v", out.Checkpoint)
	}
	f.rewind("s", "before:turn:1")
	f.want("main.go", "v0")
	f.want("shell.txt", "")
	if data, err := os.ReadFile(filepath.Join(other, "theirs.txt")); err != nil || string(data) != "of another project" {
		t.Errorf("the other project has %q, %v", data, err)
	}
}

// A turn that was interrupted ends with the next prompt. What its edit tools named is its
// work; what else changed since may be the user's and is left alone.
func TestInterruptedTurnClaimsNothingOfOthers(t *testing.T) {
	f := newFixture(t)
	f.write("main.go", "v0")
	f.prompt("s", "one")
	f.edit("s", "main.go", "v1")
	f.edit("s", "both.txt", "agent")
	f.write("both.txt", "agent and user")
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(filepath.Join(f.dir, "both.txt"), later, later); err != nil {
		t.Fatal(err)
	}
	f.write("mine.txt", "written by the user after the interruption")
	f.prompt("s", "two")
	f.edit("s", "two.txt", "2")
	f.stop("s")
	f.rewind("s", "before:turn:1")
	f.want("main.go", "v0")
	f.want("both.txt", "agent and user")
	f.want("mine.txt", "written by the user after the interruption")
	f.want("two.txt", "")
}

func TestTwoAgentsInOneDirectory(t *testing.T) {
	f := newFixture(t)
	f.write("shared.go", "v0")
	f.prompt("a", "one")
	f.prompt("b", "one")
	f.edit("a", "a.txt", "a")
	f.edit("b", "b.txt", "b")
	f.write("nobody.txt", "by a command of one of them")
	f.stop("a")
	f.stop("b")
	f.rewind("a", "before:turn:1")
	f.want("a.txt", "")
	f.want("b.txt", "b")
	f.want("nobody.txt", "by a command of one of them")
}

// The end of a turn does not claim a file that another agent changed after the turn's edit.
func TestTheEndOfATurnClaimsNothingOfOthers(t *testing.T) {
	f := newFixture(t)
	f.write("both.txt", "v0")
	f.write(".gitignore", "ignored.txt\n")
	f.prompt("a", "one")
	f.edit("a", "both.txt", "a")
	f.edit("a", "a.txt", "a")
	f.edit("a", "ignored.txt", "a")
	f.prompt("b", "one")
	for _, name := range []string{"both.txt", "ignored.txt"} {
		f.write(name, "a, then b with a command")
		later := time.Now().Add(time.Minute)
		if err := os.Chtimes(filepath.Join(f.dir, name), later, later); err != nil {
			t.Fatal(err)
		}
	}
	f.stop("b")
	out := f.stop("a")
	f.rewind("a", "before:turn:1")
	f.want("a.txt", "")
	f.want("both.txt", "a, then b with a command")
	f.want("ignored.txt", "a, then b with a command")
	if _, err := workspace.Lookup(context.Background(), f.r.Blobs, out.Checkpoint.Tree, "ignored.txt"); err != nil {
		t.Errorf("an ignored file that the turn wrote, and something else after it, is not captured: %v", err)
	}
}

// A file that the edit tools of two turns wrote is nobody's, whichever wrote it last and
// whichever ends first.
func TestAFileThatTwoTurnsEditedIsNobodys(t *testing.T) {
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		t.Run(order[0]+" ends first", func(t *testing.T) {
			f := newFixture(t)
			f.write("both.go", "v0")
			f.prompt("a", "one")
			f.prompt("b", "one")
			f.edit("a", "both.go", "a's lines")
			aTick()
			f.edit("b", "both.go", "a's lines, b's lines")
			f.stop(order[0])
			f.stop(order[1])
			f.rewind("b", "before:turn:1")
			f.want("both.go", "a's lines, b's lines")
			f.rewind("a", "before:turn:1")
			f.want("both.go", "a's lines, b's lines")
		})
	}
}

// The end of a turn does not claim the removal of a file that something else removed after
// the turn's edit. What a tool of the turn removed is the turn's.
func TestTheEndOfATurnClaimsNoRemovalOfOthers(t *testing.T) {
	f := newFixture(t)
	f.write("other.txt", "v0")
	f.write("own.txt", "v0")
	f.prompt("a", "one")
	f.edit("a", "other.txt", "a")
	f.prompt("b", "one")
	remove := func(name string) {
		t.Helper()
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	remove("own.txt")
	f.event("a", foreign.Event{Kind: foreign.ToolEnd, Call: &foreign.Call{Tool: foreign.DeleteTool, Paths: []string{filepath.Join(f.dir, "own.txt")}}})
	aTick()
	remove("other.txt") // by a command of b
	f.stop("b")
	f.stop("a")
	f.rewind("a", "before:turn:1")
	f.want("other.txt", "")
	f.want("own.txt", "v0")
}

// aTick lets the clock of the file system reach the present.
func aTick() { time.Sleep(50 * time.Millisecond) }

// A background task keeps the turn open after the agent answered.
func TestBackgroundTask(t *testing.T) {
	f := newFixture(t)
	f.write("main.go", "v0")
	f.prompt("s", "one")
	f.event("s", foreign.Event{Kind: foreign.TaskStart})
	if out := f.event("s", foreign.Event{Kind: foreign.TurnEnd, Background: 1}); out.Checkpoint == nil {
		t.Error("no checkpoint at the answer")
	}
	f.write("late.txt", "by the task")
	if out := f.event("s", foreign.Event{Kind: foreign.TaskEnd}); out.Checkpoint == nil {
		t.Error("no checkpoint at the end of the task")
	}
	f.write("mine.txt", "by the user")
	f.rewind("s", "before:turn:1")
	f.want("late.txt", "")
	f.want("mine.txt", "by the user")
}

// The end of a foreground task, and an end without a beginning, make no checkpoint.
func TestEventsThatEndNothing(t *testing.T) {
	f := newFixture(t)
	if out := f.stop("s"); out.Checkpoint != nil {
		t.Errorf("a turn that did not begin ended: %+v", out.Checkpoint)
	}
	f.prompt("s", "one")
	f.event("s", foreign.Event{Kind: foreign.TaskStart})
	if out := f.event("s", foreign.Event{Kind: foreign.TaskEnd}); out.Checkpoint != nil {
		t.Errorf("a task ended the turn: %+v", out.Checkpoint)
	}
	f.event("s", foreign.Event{Kind: foreign.SessionEnd})
	f.atWork("s", false)
}

// atWork checks whether a session has an open turn.
func (f *fixture) atWork(session string, want bool) {
	f.t.Helper()
	space, err := f.service.Open(context.Background(), f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	defer space.Close()
	turns, err := space.AtWork(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	open := slices.ContainsFunc(turns, func(t checkpoint.Turn) bool { return t.Conversation == session })
	if open != want {
		f.t.Errorf("the session is at work: %v, want %v", open, want)
	}
}

// A checkpoint before a turn that is taken late, after the turn has ended, does not make
// what the user writes then the turn's work; nor does one after the next turn has begun.
func TestLateBeginning(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	f.write("main.go", "v0")
	late := func(prompt string) foreign.Event {
		return foreign.Event{Kind: foreign.TurnStart, Session: "s", Workspace: f.dir, Prompt: prompt, Raw: []byte(`{"prompt": "` + prompt + `"}`)}
	}
	add := func(e foreign.Event) {
		if err := spool.Open(f.r.Spool, "silent", "s").Add("x", e, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	open := func() int {
		space, err := f.service.Open(ctx, f.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer space.Close()
		turns, err := space.AtWork(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return len(turns)
	}
	add(late("one"))
	f.stop("s") // found no turn
	if _, err := f.r.Record(ctx, late("one")); err != nil {
		t.Fatal(err)
	}
	if n := open(); n != 0 {
		t.Errorf("%d turns are open after a late beginning", n)
	}
	add(late("two"))
	if out, err := f.r.Record(ctx, late("one")); err != nil || out.Checkpoint != nil {
		t.Errorf("the turn before began again: %+v, %v", out.Checkpoint, err)
	}
	if _, err := f.r.Record(ctx, late("two")); err != nil || open() != 1 {
		t.Errorf("the second turn did not begin: %v", err)
	}
}

func TestEventWithoutSession(t *testing.T) {
	f := newFixture(t)
	if _, err := f.r.Record(context.Background(), foreign.Event{Kind: foreign.TurnStart, Workspace: f.dir}); err == nil {
		t.Error("no error")
	}
}

// A conversation is named after the first prompt that a person typed, also while the agent
// has not recorded it.
func TestTitleOfASessionWithoutARecord(t *testing.T) {
	f := newFixture(t)
	title := func() string {
		info, err := conversation.New(f.r.Blobs, f.r.Rows, nil).Get(context.Background(), "s")
		if err != nil {
			t.Fatal(err)
		}
		return info.Title
	}
	f.event("s", foreign.Event{Kind: foreign.TurnStart, Turn: "t1", Prompt: "<task-notification>", Automatic: true})
	f.stop("s")
	if got := title(); got != "" {
		t.Errorf("before anybody typed: %q", got)
	}
	f.prompt("s", "fix the total")
	f.stop("s")
	f.prompt("s", "and the tax")
	if got := title(); got != "fix the total" {
		t.Errorf("got %q", got)
	}
}

// early is an agent that records a turn before it reports the prompt.
type early struct {
	silent
	turns []foreign.Turn
}

func (e early) Sessions(context.Context, foreign.Host) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		yield(foreign.Session{Agent: "silent", ID: "s", Path: "record"}, nil)
	}
}

func (e early) Turns(context.Context, foreign.Session, foreign.Mark) iter.Seq2[foreign.Turn, error] {
	return func(yield func(foreign.Turn, error) bool) {
		for _, t := range e.turns {
			if !yield(t, nil) {
				return
			}
		}
	}
}

func (early) Files(context.Context, foreign.Session) iter.Seq2[foreign.File, error] {
	return func(func(foreign.File, error) bool) {}
}

func TestATurnThatIsRecordedBeforeItIsReportedIsCountedOnce(t *testing.T) {
	f := newFixture(t)
	var turns []foreign.Turn
	for i, id := range []string{"t1", "t2"} {
		turns = append(turns, foreign.Turn{ID: id, Prompt: "prompt " + id})
		f.r.Adapter = early{turns: turns}
		f.event("s", foreign.Event{Kind: foreign.TurnStart, Turn: id, Prompt: "prompt " + id})
		f.write("a.txt", id)
		turns[i].Done, turns[i].Steps = true, []foreign.Step{{Text: "done"}}
		out := f.event("s", foreign.Event{Kind: foreign.TurnEnd, Turn: id})
		if out.Checkpoint == nil || out.Checkpoint.Turn != uint64(i+1) || out.Checkpoint.MessageID != id {
			t.Fatalf("the end of %s gives %+v", id, out.Checkpoint)
		}
	}
}

// A prompt whose checkpoint is taken late finds its turn copied, perhaps under another id
// than that of its events. The turn is counted once.
func TestATurnThatIsCopiedBeforeItsLatePromptIsCountedOnce(t *testing.T) {
	ended := time.Now().Add(time.Hour) // by the agent's clock
	for name, test := range map[string]struct {
		turn foreign.Turn
		stop bool
	}{
		"it goes on":         {turn: foreign.Turn{}},
		"it was interrupted": {turn: foreign.Turn{Done: true, Interrupted: true, Ended: ended}},
		"its end was first":  {turn: foreign.Turn{Done: true, Ended: ended}, stop: true},
	} {
		t.Run(name, func(t *testing.T) {
			f, agent := newLate(t)
			for i, id := range []string{"t1", "t2"} {
				n := uint64(i + 1)
				turn := test.turn
				turn.ID, turn.EventID, turn.Prompt = id, "event of "+id, "prompt "+id
				turn.Steps = []foreign.Step{{Text: "done"}}
				start := foreign.Event{Kind: foreign.TurnStart, Session: "s", Workspace: f.dir, Turn: turn.EventID, Prompt: turn.Prompt, Raw: []byte(`{"prompt":"` + id + `"}`)}
				end := foreign.Event{Kind: foreign.TurnEnd, Turn: turn.EventID}
				f.add("s", start)
				agent.turns = append(agent.turns, turn)
				if test.stop {
					f.event("s", end)
				}
				out, err := f.r.Record(context.Background(), start)
				if err != nil {
					t.Fatal(err)
				}
				if rec := out.Checkpoint; rec == nil || rec.Side != checkpoint.Before || rec.Turn != n || n == 1 && !rec.Root.IsZero() {
					t.Fatalf("the beginning of %s gives %+v", id, rec)
				}
				f.write(id+".txt", id)
				agent.turns[i].Done = true
				if test.stop {
					continue
				}
				if out := f.event("s", end); out.Checkpoint == nil || out.Checkpoint.Turn != n || out.Checkpoint.MessageID != id {
					t.Fatalf("the end of %s gives %+v", id, out.Checkpoint)
				}
			}
		})
	}
}

// TestAKilledTurnKeepsItsEdits: the process of the agent is gone, so its turn is not open
// when the session goes on.
func TestAKilledTurnKeepsItsEdits(t *testing.T) {
	gone, ok := checkpoint.ProcessOf(os.Getpid(), "agent")
	if !ok {
		t.Skip("this system does not identify processes")
	}
	gone.Start++ // this id belongs to another process now
	f := newFixture(t)
	f.write("main.go", "v0")
	first := foreign.Turn{ID: "t1", Prompt: "one"}
	f.r.Adapter = early{turns: []foreign.Turn{first}}
	start := foreign.Event{Kind: foreign.TurnStart, Session: "s", Workspace: f.dir, Turn: "t1", Prompt: "one"}
	f.add("s", start)
	if _, err := f.r.Record(context.Background(), start, gone); err != nil {
		t.Fatal(err)
	}
	f.edit("s", "main.go", "v1")
	f.write("mine.txt", "written by the user after the end")
	f.r.Adapter = early{turns: []foreign.Turn{first, {ID: "t2", Prompt: "two"}}}
	f.event("s", foreign.Event{Kind: foreign.TurnStart, Turn: "t2", Prompt: "two"})
	f.edit("s", "two.txt", "2")
	f.event("s", foreign.Event{Kind: foreign.TurnEnd, Turn: "t2"})
	f.rewind("s", "before:turn:1")
	f.want("main.go", "v0")
	f.want("mine.txt", "written by the user after the end")
	f.want("two.txt", "")
}

// A conversation that is removed while its session goes on is not there again when the session
// or a turn of it ends, and begins again with the next turn.
func TestEndsDoNotBringARemovedConversationBack(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	store := conversation.New(f.r.Blobs, f.r.Rows, nil)
	f.prompt("s", "one")
	f.edit("s", "main.go", "v1")
	if err := store.Delete(ctx, "s", nil); err != nil {
		t.Fatal(err)
	}
	if out := f.stop("s"); out.Checkpoint == nil || out.Checkpoint.Turn != 1 {
		t.Errorf("the work of the turn: %+v", out)
	}
	f.event("s", foreign.Event{Kind: foreign.SessionEnd})
	if _, err := store.Get(ctx, "s"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("after the end: %v", err)
	}
	f.prompt("s", "two")
	f.edit("s", "main.go", "v2")
	f.stop("s")
	if info, err := store.Get(ctx, "s"); err != nil || info.Title != "two" {
		t.Errorf("after the next turn: %+v, %v", info, err)
	}
	f.rewind("s", "before:turn:1")
	f.want("main.go", "v1")
}
