package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/adrg/xdg"
	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/agents"
	"github.com/stet-dev/stet/foreign/carry"
	"github.com/stet-dev/stet/foreign/recorder"
	"github.com/stet-dev/stet/foreign/spool"
	"github.com/stet-dev/stet/internal/cli/shortcut"
	"github.com/stet-dev/stet/kv"
)

// Limits of a hook. An agent waits for it.
const (
	maxHookPayload = 16 << 20
	hookPatience   = 2 * time.Second        // for the payload
	endPatience    = 5 * time.Second        // while the agent has answered
	lateLimit      = 10 * time.Minute       // for what goes on behind
	hookGrace      = 200 * time.Millisecond // for work to end when its time is over
	spoolLife      = 30 * 24 * time.Hour
)

// hookCommand is what connected agents run. It returns 0, whatever happens, and prints
// nothing but what hookNotice has for the agent: agents show what hooks print, and some
// stop a tool when a hook fails.
func (a *app) hookCommand() *cobra.Command {
	var late, words, earlier bool
	cmd := &cobra.Command{
		Use:     "hook AGENT EVENT",
		Short:   "Record an event of a connected agent",
		GroupID: groupPlumbing,
		Hidden:  true,
		Long: `Record an event of a connected agent. Agents run this; 'stet connect' sets it up.
The event's payload is read from the standard input. The exit code is always 0, so that
the agent continues in any case; 'stet status' shows failures. Nothing is printed, except
for one line of context for the agent at the first prompt after a rewind.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if earlier {
				a.hook(args, func() error { return a.hookEarlier(cmd.Context(), args) })
				return nil
			}
			way := hookWay{late: late || words, words: words}
			if !way.late {
				a.notices = a.out
			}
			a.hook(args, func() error { return a.hookInput(cmd.Context(), args, way) })
			return nil
		},
	}
	cmd.Flags().BoolVar(&late, "late", false, "finish an event that took too long, in the background")
	cmd.Flags().BoolVar(&words, "words", false, "copy the messages of a turn that the agent records after its end")
	cmd.Flags().BoolVar(&earlier, "earlier", false, "copy the agent's sessions that hooks did not copy, in the background")
	return cmd
}

// hookWay says what is left of an event: late means that the agent does not wait, and
// words that its checkpoint is taken.
type hookWay struct{ late, words bool }

// hook runs the work of a hook in silence and logs what went wrong.
func (a *app) hook(args []string, work func() error) {
	name := strings.Join(args, " ")
	defer func() {
		if r := recover(); r != nil {
			a.hookFailed(name, panicked(r))
		}
	}()
	a.quiet = true
	a.out, a.err = io.Discard, io.Discard
	if err := work(); err != nil {
		a.hookFailed(name, err)
	}
}

// hookInput handles the event on the standard input.
func (a *app) hookInput(ctx context.Context, args []string, way hookWay) error {
	if len(args) != 2 {
		return fmt.Errorf("%w: stet hook needs an agent and an event", foreign.ErrEvent)
	}
	payload, err := a.hookPayload()
	if err != nil {
		return err
	}
	return a.hookEvent(ctx, args[0], args[1], payload, way)
}

// hookPayload reads what the agent says. An agent that leaves the input open does not
// keep the hook, which ends with the process.
func (a *app) hookPayload() ([]byte, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(shortcut.Stdin(a.in), maxHookPayload+1))
		done <- read{data, err}
	}()
	select {
	case r := <-done:
		if r.err == nil && len(r.data) > maxHookPayload {
			r.err = fmt.Errorf("%w: the payload is larger than %s", foreign.ErrEvent, byteSize(maxHookPayload))
		}
		return r.data, r.err
	case <-time.After(hookPatience):
		return nil, fmt.Errorf("%w: the payload did not end within %v", foreign.ErrEvent, hookPatience)
	}
}

func (a *app) hookEvent(ctx context.Context, agent, name string, payload []byte, way hookWay) error {
	adapter, err := agents.Find(agent)
	if err != nil {
		return err
	}
	event, err := adapter.Event(name, payload)
	if err != nil || event.Kind == foreign.NoEvent {
		return err
	}
	event.Raw = payload
	dir, err := a.hookDir()
	if err != nil {
		return err
	}
	if way.words {
		return a.hookWords(ctx, adapter, event)
	}
	var lost error // of the spool; the checkpoint is taken all the same
	if !way.late {
		session := spool.Open(dir, agent, event.Session)
		lost = errors.Join(session.Add(name, event, now()), keepProcess(session, agent, event))
	}
	if event.Kind == foreign.SessionStart && !way.late {
		lost = errors.Join(lost, a.earlierBehind(agent))
	}
	if !recorder.Boundary(event) {
		return lost
	}
	limit, err := a.hookLimit(event, way.late)
	if err != nil {
		return errors.Join(lost, err)
	}
	if way.late {
		a.busy = limit
	}
	wordless, err := bounded(ctx, limit, func(ctx context.Context) (bool, error) {
		return a.recordEvent(ctx, adapter, event)
	})
	if wordless {
		err = errors.Join(err, a.hookBehind("--words", agent, name, payload))
	}
	if (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kv.ErrBusy)) && !way.late {
		if err = a.hookBehind("--late", agent, name, payload); err == nil && event.Kind == foreign.TurnStart {
			err = errors.New("the checkpoint before the turn took longer than the agent waits; it finishes in the background, so the start of the turn is not exact")
		}
	}
	return errors.Join(lost, err)
}

// bounded runs work for a limited time. Work that a lock or a file system keeps does not end
// with its context; it goes on until the process ends, which is as if it were killed.
func bounded(ctx context.Context, limit time.Duration, work func(context.Context) (bool, error)) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type result struct {
		ok  bool
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- result{err: panicked(r)}
			}
		}()
		ok, err := work(ctx)
		done <- result{ok, err}
	}()
	var late <-chan time.Time
	for over := ctx.Done(); ; {
		select {
		case r := <-done:
			return r.ok, r.err
		case <-over:
			over, late = nil, time.After(hookGrace)
		case <-late:
			return false, fmt.Errorf("not finished within %v: %w", limit, ctx.Err())
		}
	}
}

// panicked is the error of a panic.
func panicked(r any) error { return fmt.Errorf("panic: %v\n%s", r, debug.Stack()) }

// hookLimit is how long an event may take.
func (a *app) hookLimit(event foreign.Event, late bool) (time.Duration, error) {
	if late {
		return lateLimit, nil
	}
	all, err := a.settings()
	if err != nil {
		return 0, err
	}
	limit := time.Duration(all.number("hook.wait_ms")) * time.Millisecond
	if event.Kind == foreign.TurnEnd || event.Kind == foreign.TaskEnd {
		limit = max(limit, endPatience)
	}
	return limit, nil
}

// hookDir is the directory of the spool and of the log of failures: beside the store,
// which may not exist yet, or where a local store would be.
func (a *app) hookDir() (string, error) {
	dir, err := a.storeDir()
	if err != nil {
		dir = filepath.Join(xdg.DataHome, "stet")
	}
	dir, err = filepath.Abs(dir)
	return dir + stet.HooksSuffix, err
}

// recordEvent takes the checkpoint of an event and copies the session. It reports whether
// a turn ended without words.
func (a *app) recordEvent(ctx context.Context, adapter foreign.Adapter, event foreign.Event) (wordless bool, err error) {
	err = a.withStoreOf(ctx, adapter, event, func(db *stet.DB, r *recorder.Recorder) error {
		noticed := a.hookNotice(ctx, db, adapter, event)
		open := r.Space
		r.Space = func(ctx context.Context, dir string) (*checkpoint.Workspace, error) {
			space, err := open(ctx, dir)
			if err == nil && space != nil {
				a.settle(ctx, db, space, event.Session)
			}
			return space, err
		}
		agent := agentProcess(adapter.Name())
		r.Within = func(t checkpoint.Turn) bool { return len(agent) > 0 && waitsFor(&t, agent[0].PID) }
		out, err := r.Record(ctx, event, agent...)
		wordless = out.Wordless
		if res := out.Result; err == nil && res != nil {
			if bad := notIgnored(res.NotCaptured); len(bad) > 0 && event.Kind == foreign.TurnStart {
				a.hookFailed(adapter.Name(), fmt.Errorf("not captured: %s", skippedText(bad, 5)))
			}
		}
		if event.Kind == foreign.SessionEnd {
			err = errors.Join(err, spool.Prune(r.Spool, now().Add(-spoolLife)))
		}
		return errors.Join(append(out.Unreadable, err, noticed)...)
	})
	return wordless, err
}

// withRecorder opens the store for the events of an agent.
func (a *app) withRecorder(ctx context.Context, adapter foreign.Adapter, create bool, use func(*stet.DB, *recorder.Recorder) error) error {
	return a.withStore(ctx, create, func(db *stet.DB) error {
		r, err := a.recorder(db, adapter)
		if err != nil {
			return err
		}
		return use(db, r)
	})
}

// recorder returns the recorder of an agent.
func (a *app) recorder(db *stet.DB, adapter foreign.Adapter) (*recorder.Recorder, error) {
	host, err := foreign.ThisHost()
	if err != nil {
		return nil, err
	}
	dir, err := a.hookDir()
	if err != nil {
		return nil, err
	}
	return &recorder.Recorder{
		Adapter: adapter, Host: host, Blobs: db.Blobs(), Rows: db.Rows(), Spool: dir, Author: adapter.Name(),
		Space: func(ctx context.Context, dir string) (*checkpoint.Workspace, error) {
			return a.hookSpace(ctx, db, host, dir)
		},
		Origin: func(ctx context.Context, s foreign.Session) (string, string, error) {
			return carry.Origin(ctx, db.Conversations(), s)
		},
	}, nil
}

// hookSpace opens the workspace of a directory: the one that has checkpoints already, or
// the repository that contains it, or the directory itself. The home directory and the
// root of the file system are not captured, since nobody means all of them.
func (a *app) hookSpace(ctx context.Context, db *stet.DB, host foreign.Host, dir string) (*checkpoint.Workspace, error) {
	if dir == "" {
		return nil, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the agent works in %s, which no longer exists; nothing was captured", dir)
	}
	if err != nil {
		return nil, err
	}
	root, err := a.workspaceAbove(ctx, db, real)
	if err != nil {
		return nil, err
	}
	home, _ := filepath.EvalSymlinks(host.Home)
	if root == home || root == filepath.Dir(root) {
		return nil, fmt.Errorf("the agent works in %s, which is not captured as a whole; run 'stet checkpoint' in a subdirectory to capture that", root)
	}
	if err := apart(db, root); err != nil {
		return nil, err
	}
	service, _, err := a.checkpoints(db)
	if err != nil {
		return nil, err
	}
	return service.Open(ctx, root)
}

// hookFailure is a line of the log of failures.
type hookFailure struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	Error string    `json:"error"`
}

// hookFailed keeps a failure for status and doctor. It cannot fail in a way that anybody
// could act on.
func (a *app) hookFailed(event string, err error) {
	dir, dirErr := a.hookDir()
	if dirErr != nil || os.MkdirAll(dir, 0o700) != nil {
		return
	}
	line, jsonErr := json.Marshal(hookFailure{Time: now().UTC(), Event: event, Error: err.Error()})
	if jsonErr != nil {
		return
	}
	path := filepath.Join(dir, "failures.jsonl")
	if info, err := os.Stat(path); err == nil && info.Size() > 1<<20 {
		_ = os.Rename(path, path+".1")
	}
	f, openErr := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if openErr != nil {
		return
	}
	_, _ = f.Write(append(line, '\n'))
	_ = f.Close()
}

// hookFailures returns the failures since a time, oldest first.
func (a *app) hookFailures(since time.Time) []hookFailure {
	dir, err := a.hookDir()
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(dir, "failures.jsonl"))
	if err != nil {
		return nil
	}
	var out []hookFailure
	for line := range strings.Lines(string(data)) {
		var f hookFailure
		if json.Unmarshal([]byte(line), &f) == nil && f.Time.After(since) {
			out = append(out, f)
		}
	}
	return out
}
