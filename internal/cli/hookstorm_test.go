package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign/spool"
	"github.com/stet-dev/stet/internal/testenv"
)

// Figures of the storm: calls of tools in a turn, of which some run at once, and how many
// hooks are killed, one in so many.
const (
	stormCalls   = 20
	stormWidth   = 4
	killTools    = 8
	killTurns    = 4
	killWithin   = 60 * time.Millisecond
	stormPerTurn = 2 + 2*stormCalls
)

// storm is a workspace in which two agents and a user work while hooks are killed.
type storm struct {
	t      *testing.T
	dir    string // the workspace
	spool  string
	agents []*stormAgent
	mine   []string // files of the user
}

// stormAgent is an agent and what it knows about its own hooks.
type stormAgent struct {
	s             *storm
	name, session string
	event         func(a *stormAgent, name string, call *stormCall) any
	random        *rand.Rand

	turn    int
	begun   bool // the hook of the prompt returned
	shown   atomic.Bool
	showing chan struct{} // closed when a hook of the turn has returned

	mu       sync.Mutex
	returned []string          // calls of the turn whose hooks returned
	files    map[string]string // all files: "" or why its author is certain
	whole    []string          // turns whose prompt and end were reported
}

type stormCall struct {
	id, file string
	edit     bool
}

// TestHookStorm kills hooks of two agents at random points while a user edits files, too.
// No event is lost whose hook returned, every turn that was reported has its checkpoints,
// and no file counts as the work of somebody who did not write it. What that means does
// not depend on where the kills hit.
func TestHookStorm(t *testing.T) {
	s := newStorm(t)
	rounds := testenv.Sizes(300, 2_500, 10_000) / (2 * stormPerTurn)
	for round := range rounds {
		s.round(round < rounds-1)
	}
	for _, a := range s.agents {
		if !a.hook("SessionEnd", nil, 0) {
			t.Errorf("%s: the last hook failed", a.name)
		}
	}
	s.check()
}

func newStorm(t *testing.T) *storm {
	root := testenv.TempDir(t)
	s := &storm{t: t, dir: filepath.Join(root, "ws"), spool: filepath.Join(root, "store.hooks")}
	home := filepath.Join(root, "home")
	for _, dir := range []string{s.dir, home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, set := range [][2]string{{"HOME", home}, {"XDG_DATA_HOME", home}, {"XDG_CONFIG_HOME", home},
		{"STET_STORE", filepath.Join(root, "store")}, {"STET_HOOK_WAIT_MS", "600000"}} {
		t.Setenv(set[0], set[1])
	}
	s.write("main.go", "package main\n")
	for i, a := range []*stormAgent{{name: "claude-code", event: claudeStorm}, {name: "codex", event: codexStorm}} {
		a.s, a.session, a.files = s, fmt.Sprintf("%08d-0000-4000-8000-000000000000", i+1), map[string]string{}
		a.random = rand.New(rand.NewPCG(uint64(i), 2026))
		s.agents = append(s.agents, a)
	}
	return s
}

func (s *storm) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// round is one turn of both agents.
func (s *storm) round(kill bool) {
	both := func(step func(a *stormAgent)) {
		var wg sync.WaitGroup
		for _, a := range s.agents {
			wg.Go(func() { step(a) })
		}
		wg.Wait()
	}
	for _, a := range s.agents {
		a.turn++
		a.returned, a.showing = nil, make(chan struct{})
		a.shown.Store(false)
	}
	both(func(a *stormAgent) { a.begun = a.hook("UserPromptSubmit", nil, odds(kill, killTurns)) })
	user := make(chan struct{})
	go func() { // while both agents are known to work, nothing says whose the file is
		defer close(user)
		for _, a := range s.agents {
			<-a.showing
		}
		if s.agents[0].shown.Load() && s.agents[1].shown.Load() {
			name := fmt.Sprintf("user-%d.txt", s.agents[0].turn)
			s.write(name, "by the user")
			s.mine = append(s.mine, name)
		}
	}()
	both(func(a *stormAgent) { a.work(kill) })
	for _, a := range s.agents {
		if !a.shown.Load() {
			close(a.showing)
		}
	}
	<-user
	both(func(a *stormAgent) { a.stop(kill) })
	for _, a := range s.agents {
		a.checkSpool()
	}
}

// odds is one in so many, or never.
func odds(kill bool, of int) int {
	if !kill {
		return 0
	}
	return of
}

// work calls tools, some at once.
func (a *stormAgent) work(kill bool) {
	calls := make(chan stormCall)
	var wg sync.WaitGroup
	for range stormWidth {
		wg.Go(func() {
			for c := range calls {
				a.call(c, kill)
			}
		})
	}
	for n := range stormCalls {
		id := fmt.Sprintf("%s-%d-%d", a.name, a.turn, n)
		calls <- stormCall{id: id, file: id + ".txt", edit: n%3 != 0}
		if n == stormCalls/2 {
			a.tear()
		}
	}
	close(calls)
	wg.Wait()
}

// call calls a tool. An agent of which no hook has returned in this turn writes nothing:
// then nobody could know that it works.
func (a *stormAgent) call(c stormCall, kill bool) {
	a.hook("PreToolUse", &c, odds(kill, killTools))
	if !a.shown.Load() {
		return
	}
	a.s.write(c.file, "by "+a.name)
	done := a.hook("PostToolUse", &c, odds(kill, killTools))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.files[c.file] = ""
	if c.edit && done && a.begun {
		a.files[c.file] = a.prompt()
	}
}

// tear leaves half a line in the spool, as a full disk does.
func (a *stormAgent) tear() {
	files, _ := filepath.Glob(filepath.Join(a.s.spool, a.name, a.session, "*.jsonl"))
	if len(files) == 0 {
		return
	}
	f, err := os.OpenFile(files[len(files)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return // the turn of the file is over
	}
	fmt.Fprintf(f, "\n{\"time\":\"2026-11-1")
	f.Close()
}

// stop ends the turn.
func (a *stormAgent) stop(kill bool) {
	if a.name == "claude-code" {
		a.answer()
	}
	if a.hook("Stop", nil, odds(kill, killTurns)) && a.begun {
		a.whole = append(a.whole, a.prompt())
	}
}

func (a *stormAgent) prompt() string { return fmt.Sprintf("%s-turn-%d", a.name, a.turn) }

func (a *stormAgent) transcript() string {
	return filepath.Join(a.s.spool+"-transcript", a.session+".jsonl")
}

// answer adds the turn to the agent's own record.
func (a *stormAgent) answer() {
	if err := os.MkdirAll(filepath.Dir(a.transcript()), 0o755); err != nil {
		a.s.t.Error(err)
	}
	f, err := os.OpenFile(a.transcript(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		a.s.t.Error(err)
		return
	}
	defer f.Close()
	parent := "null"
	if a.turn > 1 {
		parent = fmt.Sprintf(`"a%d"`, a.turn-1)
	}
	at := time.Date(2026, 11, 16, 12, 0, a.turn, 0, time.UTC).Format(time.RFC3339)
	fmt.Fprintf(f, `{"type":"user","uuid":%q,"parentUuid":%s,"promptId":%q,"message":{"role":"user","content":"do it"},"cwd":%q,"sessionId":%q,"timestamp":%q}`+"\n",
		a.prompt(), parent, a.prompt(), a.s.dir, a.session, at)
	fmt.Fprintf(f, `{"type":"assistant","uuid":"a%d","parentUuid":%q,"message":{"id":"m%d","role":"assistant","model":"m","content":[{"type":"text","text":"done"}]},"sessionId":%q,"timestamp":%q}`+"\n",
		a.turn, a.prompt(), a.turn, a.session, at)
}

// hook runs the hook client, kills one in so many, and reports whether it returned.
func (a *stormAgent) hook(name string, call *stormCall, kill int) bool {
	payload, err := json.Marshal(a.event(a, name, call))
	if err != nil {
		panic(err)
	}
	a.mu.Lock()
	wait := time.Duration(-1)
	if kill > 0 && a.random.IntN(kill) == 0 {
		wait = time.Duration(a.random.Int64N(int64(killWithin)))
	}
	a.mu.Unlock()
	cmd := exec.Command("stet", "hook", a.name, name)
	cmd.Stdin, cmd.Dir = bytes.NewReader(payload), a.s.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		a.s.t.Error(err)
		return false
	}
	if wait >= 0 {
		timer := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err = cmd.Wait()
	if out.Len() > 0 || err != nil && wait < 0 {
		a.s.t.Errorf("%s %s: %v, it says %q", a.name, name, err, out.String())
	}
	if err != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if call != nil {
		a.returned = append(a.returned, name+" "+call.id)
	}
	if a.shown.CompareAndSwap(false, true) {
		close(a.showing)
	}
	return true
}

// checkSpool looks for the events of the turn whose hooks returned.
func (a *stormAgent) checkSpool() {
	a.s.t.Helper()
	ctx := context.Background()
	sp := spool.Open(a.s.spool, a.name, a.session)
	current, err := sp.Turn(ctx)
	if err != nil {
		a.s.t.Error(err)
	}
	previous, err := sp.Previous(ctx)
	if err != nil {
		a.s.t.Error(err)
	}
	have := map[string]bool{}
	for _, e := range slices.Concat(previous.Events, current.Events) {
		have[e.Name+" "+e.Call] = true
	}
	for _, want := range a.returned {
		if !have[want] {
			a.s.t.Errorf("%s, turn %d: the event %q is lost", a.name, a.turn, want)
		}
	}
}

// check looks at checkpoints and at what a rewind of each agent would take back.
func (s *storm) check() {
	ctx := context.Background()
	a := &app{out: &bytes.Buffer{}, err: &bytes.Buffer{}, store: os.Getenv("STET_STORE")}
	for _, f := range a.hookFailures(time.Time{}) {
		s.t.Errorf("a hook failed: %s: %s", f.Event, f.Error)
	}
	err := a.withStore(ctx, false, func(db *stet.DB) error {
		service, _, err := a.checkpoints(db)
		if err != nil {
			return err
		}
		space, err := service.Open(ctx, s.dir)
		if err != nil {
			return err
		}
		defer space.Close()
		for _, agent := range s.agents {
			agent.checkTurns(ctx, space)
			agent.checkBlame(ctx, space)
		}
		turns, err := space.AtWork(ctx)
		if len(turns) > 0 {
			s.t.Errorf("turns go on: %+v", turns)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// checkTurns looks for the checkpoints of turns that were reported.
func (a *stormAgent) checkTurns(ctx context.Context, space *checkpoint.Workspace) {
	sides := map[string]int{}
	for rec, err := range space.List(ctx, nil) {
		if err != nil {
			a.s.t.Fatal(err)
		}
		if rec.Conversation == a.session && rec.Side != checkpoint.NoSide {
			sides[fmt.Sprint(rec.MessageID, " ", rec.Side)]++
		}
	}
	for _, turn := range a.whole {
		for _, side := range []checkpoint.Side{checkpoint.Before, checkpoint.After} {
			if n := sides[fmt.Sprint(turn, " ", side)]; n != 1 {
				a.s.t.Errorf("%s has %d checkpoints %v", turn, n, side)
			}
		}
	}
	if len(a.whole) == 0 {
		a.s.t.Errorf("%s: no turn was whole", a.name)
	}
}

// checkBlame looks at what counts as the agent's work.
func (a *stormAgent) checkBlame(ctx context.Context, space *checkpoint.Workspace) {
	plan, err := space.Plan(ctx, checkpoint.RewindRequest{To: "c1", Conversation: a.session, Scope: checkpoint.FilesOnly, Choice: checkpoint.KeepMine})
	if err != nil {
		a.s.t.Fatal(err)
	}
	own := map[string]bool{}
	for _, action := range plan.Actions {
		if !action.Changes() {
			continue
		}
		own[action.Path] = true
		if !strings.HasPrefix(action.Path, a.name) {
			a.s.t.Errorf("%s counts as the work of %s: %+v", action.Path, a.name, action.Writer)
		}
	}
	lost := 0
	for file, why := range a.files {
		if why != "" && !own[file] && slices.Contains(a.whole, why) {
			lost++
			a.s.t.Errorf("%s does not count as the work of %s, which said so", file, a.name)
		}
	}
	a.s.t.Logf("%s: %d of %d files are its own, %d turns of %d are whole; the user wrote %d", a.name, len(own), len(a.files), len(a.whole), a.turn, len(a.s.mine))
}

// claudeStorm makes a payload of Claude Code.
func claudeStorm(a *stormAgent, name string, c *stormCall) any {
	p := map[string]any{
		"session_id": a.session, "transcript_path": a.transcript(), "cwd": a.s.dir, "prompt_id": a.prompt(), "hook_event_name": name, "prompt": "do it",
	}
	if c != nil {
		p["tool_use_id"], p["tool_name"], p["tool_response"] = c.id, "Bash", map[string]any{}
		p["tool_input"] = map[string]any{"command": "echo > " + c.file}
		if c.edit {
			p["tool_name"], p["tool_input"] = "Write", map[string]any{"file_path": filepath.Join(a.s.dir, c.file), "content": "x"}
		}
	}
	return p
}

// codexStorm makes a payload of Codex, whose record is not there.
func codexStorm(a *stormAgent, name string, c *stormCall) any {
	p := map[string]any{
		"session_id": a.session, "transcript_path": a.transcript(), "cwd": a.s.dir, "turn_id": a.prompt(), "hook_event_name": name, "prompt": "do it",
	}
	if c != nil {
		p["tool_use_id"], p["tool_name"], p["tool_response"] = c.id, "Bash", "done"
		p["tool_input"] = map[string]any{"command": "echo > " + c.file}
		if c.edit {
			p["tool_name"], p["tool_input"] = "apply_patch", map[string]any{"command": "*** Begin Patch\n*** Add File: " + c.file + "\n+x\n*** End Patch"}
		}
	}
	return p
}
