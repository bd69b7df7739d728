package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/supervise"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/workspace"
)

func (a *app) runCommand() *cobra.Command {
	var opts runOptions
	cmd := &cobra.Command{
		Use:     "run [--agent NAME] [--output] -- CMD [ARG…]",
		Short:   "Run any command with checkpoints before, during and after it",
		GroupID: groupStart,
		Long: `Run a command in the workspace, with a checkpoint before it, one after each burst
of changes while it runs, and one when it ends. Changes made while it runs count as the
command's work: 'stet rewind' reverts them and keeps your own changes. This works for
any agent, script or generator.

The command uses your terminal and receives your signals, and its exit code is returned.
Each run is a turn of a conversation: the one that -c names, or one that holds all runs
of the day in this workspace. A run that succeeds and changes nothing leaves no turn. If
the command cannot be run, the exit code is 127 or 126, as in a shell. If no checkpoint
can be made, the command is not started.

--output stores the command's output with its turn, at most the last MiB, for 'stet
show' and 'stet search'. The command then writes to a pipe instead of your terminal.

If several commands or agents work in a directory at the same time, the author of a
change is unknown: a rewind keeps such changes, unless you name the file. An agent that
is connected (see 'stet connect') records its own turns, with the prompts, and the run
leaves the changes to them, whether it is the command or the command starts it and waits,
as npx and scripts do. What the command changes before and after the agent is the run's;
what changed just as the agent ended, or while it waited for a prompt, is nobody's.

If 'stet run' is killed, its turn ends when its command ends, and changes after its last
checkpoint count as yours; 'stet status' shows a command that is still running.`,
		Example: "  stet run -- claude\n  stet run -- make generate\n  stet -c 01JCX4 run -- codex exec 'add a test'",
		Args:    needsCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPlace(cmd.Context(), true, func(p *place) error {
				return a.runWith(cmd.Context(), p, opts, args)
			})
		},
	}
	cmd.Flags().StringVar(&opts.agent, "agent", "", "name of the agent in lists; its runs of a day have their own conversation")
	cmd.Flags().BoolVar(&opts.output, "output", false, "store the output of the command with its turn")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// runOptions are the flags of a run.
type runOptions struct {
	agent  string
	output bool
}

// runName is the name of a run's own process in the list of holders of a turn.
const runName = "stet run"

// heartbeat is how often a run renews its turn for readers that cannot see its
// processes, for example in another container. A turn without a heartbeat ends after an
// hour.
const heartbeat = 15 * time.Minute

// lookEvery is how often a run looks whether an agent that its command started has ended: what the
// command changes before that is noticed is nobody's.
const lookEvery = 250 * time.Millisecond

// supervised is a run of a command. It makes checkpoints as an observer of it.
type supervised struct {
	app   *app
	p     *place
	alone conversation.Info // of a conversation of this run alone, or with the id of the one that was named
	agent string            // as it was given
	conv  *conversation.Conversation
	turn  uint64
	by    checkpoint.Holder // of the turn: this process and the command
	root  blob.ID           // of the conversation before the run
	first *checkpoint.Record
	part  *checkpoint.Record // began the current turn, which is another one after an agent's
	last  *checkpoint.Record
	made  bool // the conversation is new
	empty bool // nothing was done
	told  bool // a failed checkpoint was reported
	// changed are the paths of changes that no checkpoint has yet, nil if they are not known.
	changed []string
	// unsaid is why the conversation lacks the turn, although its files are captured.
	unsaid error
	// sessions are those of connected agents that took the run's turn over, and agents the
	// processes of those that the command started and waited for.
	sessions []checkpoint.Place
	agents   []checkpoint.Process
	whole    bool      // the command is the agent: what is not in its turns is not the run's
	quiet    int       // looks in a row that found no agent
	worked   bool      // a turn of the run has changes
	held     time.Time // when the turn was renewed

	command string      // as it was given
	printed *keptOutput // nil unless it is kept
	skipped []string    // paths that were named as not captured
	ignored []string    // files that changed although no checkpoint has them
	lost    []string    // git repositories that are gone
}

func (a *app) runWith(ctx context.Context, p *place, opts runOptions, args []string) error {
	if err := checkAgent(opts.agent); err != nil {
		return err
	}
	path, err := supervise.Find(args[0], a.workspace)
	if err != nil {
		return started(err)
	}
	// Kept until the end, so that a second interrupt does not prevent the save.
	signals, stop := supervise.Signals()
	defer stop()
	s, err := a.supervise(ctx, p, opts, args)
	if err != nil {
		return err
	}
	if err := a.tellAtWork(ctx, p); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return fmt.Errorf("not started: %w", err)
	}
	code, err := s.process(ctx, path, args, signals)
	// From here on the command decides what an interrupt means.
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		// The turn ends although nothing happened in it: later changes are not its
		// work.
		code, _ = Code(err)
		ended := s.end(ctx, code)
		return errors.Join(err, ended, s.unsaid)
	}
	if err := s.end(ctx, code); err != nil {
		a.warn("the command's changes since %s are not saved: %v", s.last.Name(), err)
		if code == 0 {
			code = ExitError
		}
		return silentExit{code}
	}
	if err := s.report(ctx, code); err != nil {
		return err
	}
	if s.unsaid != nil {
		a.warn("the files are captured, but the turn is not in the conversation: %v", s.unsaid)
		if code == 0 {
			code, _ = Code(s.unsaid)
		}
	}
	if code != 0 {
		return silentExit{code}
	}
	return nil
}

// started gives an error of a command that was not started its exit code.
func started(err error) error {
	var start *supervise.StartError
	switch {
	case errors.As(err, &start):
		return coded(start.Code, "%w", start.Err)
	case errors.Is(err, context.Canceled):
		return coded(ExitInterrupted, "%w", err)
	}
	return err
}

// checkAgent refuses a name of an agent that conversations cannot hold.
func checkAgent(name string) error {
	if !utf8.ValidString(name) {
		return usage(fmt.Errorf("--agent %q is not valid UTF-8", name))
	}
	return nil
}

// agentOf returns the name of an agent in lists: the one that was given, or that of the
// program.
func agentOf(given, program string) string {
	return cmp.Or(given, strings.ToValidUTF8(filepath.Base(program), "\uFFFD"))
}

// supervise prepares a run.
func (a *app) supervise(ctx context.Context, p *place, opts runOptions, args []string) (*supervised, error) {
	s := &supervised{app: a, p: p, command: foreign.CommandLine(args...), agent: opts.agent}
	if opts.output {
		s.printed = &keptOutput{}
	}
	id, err := a.named(ctx, p.db)
	if err != nil {
		return nil, err
	}
	s.alone = conversation.Info{ID: id, Title: s.command, Agent: agentOf(opts.agent, args[0]), Workspace: p.space.Path()}
	s.by.ID = rand.Text() // another run may be at work on the same conversation
	if me, ok := checkpoint.ProcessOf(os.Getpid(), runName); ok {
		s.by.Processes = []checkpoint.Process{me}
	}
	return s, nil
}

// choose opens the conversation that the run is a turn of. It is called while no other run
// begins, because two that began at the same moment would become turns of one conversation,
// and a rewind of one would take back both.
func (s *supervised) choose(ctx context.Context, atWork checkpoint.Turns) (checkpoint.Place, error) {
	store, info := s.p.db.Conversations(), s.alone
	var err error
	if info.ID == "" {
		if info, err = dayOfRuns(ctx, store, info, s.agent, now(), atWork); err != nil {
			return checkpoint.Place{}, err
		}
	}
	if s.conv, s.made, err = openOrCreate(ctx, store, info); err != nil {
		return checkpoint.Place{}, err
	}
	info = s.conv.Info()
	s.turn, s.root = info.Turns+1, info.Root
	for _, t := range atWork {
		if t.Conversation == info.ID && t.Number >= s.turn {
			s.turn = t.Number + 1
		}
	}
	return checkpoint.Place{Conversation: info.ID, Root: s.root, Turn: s.turn}, nil
}

// begin makes the checkpoint before the run. If that fails, it leaves no empty
// conversation.
func (s *supervised) begin(ctx context.Context) error {
	err := s.save(ctx, checkpoint.Request{Side: checkpoint.Before, Choose: s.choose})
	if err != nil && s.made {
		err = errors.Join(err, s.p.db.Conversations().Delete(context.WithoutCancel(ctx), s.conv.ID(), nil))
	}
	s.first, s.part, s.held = s.last, s.last, time.Now()
	return err
}

// end saves the run and its changes as a turn. A run that did nothing leaves none.
func (s *supervised) end(ctx context.Context, code int) error {
	if s.takenOver(ctx) && !s.resumed(ctx, true) {
		return s.leave(ctx, code)
	}
	looked := false
	err := s.save(ctx, checkpoint.Request{
		Side: checkpoint.After,
		State: func(ctx context.Context, now checkpoint.Seen) (blob.ID, error) {
			looked = true
			s.empty = code == 0 && !s.printed.any() && s.last == s.part && now.Tree == s.part.Tree && len(now.IgnoredChanged) == 0
			s.worked = s.worked || s.last != s.part || now.Tree != s.part.Tree
			if !s.empty {
				s.unsaid = s.record(ctx, code)
			}
			return s.root, nil
		},
	})
	switch {
	case !looked: // the turn is not lost with its files
		s.unsaid = s.record(ctx, code)
	case err == nil && s.empty:
		err = s.dropEmpty(ctx)
	}
	return err
}

// dropEmpty removes the conversation that was created for a run which left no turn, unless
// another run uses it.
func (s *supervised) dropEmpty(ctx context.Context) error {
	if !s.made {
		return nil
	}
	open, err := s.p.space.AtWork(ctx)
	if err != nil || slices.ContainsFunc(open, func(t checkpoint.Turn) bool { return t.Conversation == s.conv.ID() }) {
		return err
	}
	info, err := s.p.db.Conversations().Get(ctx, s.conv.ID())
	if err != nil || info.Save > 0 {
		return err
	}
	return s.p.db.Conversations().Delete(ctx, s.conv.ID(), nil)
}

// tellGone reports how to restore a workspace that the command removed.
func (s *supervised) tellGone() {
	dir := s.p.space.Path()
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		s.app.warn("the command removed the workspace; to restore it: mkdir %s, then stet -C %s rewind %s", dir, dir, s.first.Name())
	}
}

// save makes a checkpoint of the run's turn.
func (s *supervised) save(ctx context.Context, req checkpoint.Request) error {
	if s.conv != nil { // otherwise the request chooses it
		req.Conversation, req.Root, req.Turn = s.conv.ID(), s.root, s.turn
	}
	req.Author, req.Auto, req.Holder = author(), true, s.by
	res, err := s.p.space.Checkpoint(ctx, req)
	if err != nil {
		return err
	}
	s.app.tellRecovery(res.Recovered)
	switch {
	case res.Skipped == checkpoint.SkippedUnchanged:
		return nil
	case res.Record == nil:
		return fmt.Errorf("%s", res.Skipped)
	}
	if req.Side != checkpoint.NoSide {
		bad := slices.DeleteFunc(notIgnored(res.NotCaptured), func(skip workspace.Skipped) bool { return slices.Contains(s.skipped, skip.Path) })
		if len(bad) > 0 {
			s.app.warn("not captured: %s", skippedText(bad, 5))
		}
		for _, skip := range bad {
			s.skipped = append(s.skipped, skip.Path)
		}
	}
	if req.Side == checkpoint.Before && s.first == nil {
		if lacks := notKeptText(&res.NotKept); lacks != "" {
			s.app.warn("not kept: %s", lacks)
		}
		if lost := stateLost(res); lost != nil {
			s.app.warn("%v", lost)
		}
	}
	s.last = res.Record
	s.ignored, s.lost = splitLost(res.IgnoredChanged)
	return nil
}

// burst makes a checkpoint of the paths that changed, or of everything if they are not
// known. It reports a failure once: the command goes on, and the checkpoint at its end, which
// looks at everything, shows whether all is well.
func (s *supervised) burst(ctx context.Context, paths []string) {
	if s.takenOver(ctx) {
		return
	}
	if s.changed != nil && paths != nil {
		s.changed = append(s.changed, paths...)
	} else {
		s.changed = nil // also if an earlier burst did not know them and failed
	}
	err := s.save(ctx, checkpoint.Request{Paths: s.changed, IfChanged: true})
	switch {
	case err == nil:
		s.changed = []string{}
	case len(s.changed) > maxHeld:
		s.changed = nil
	}
	if err != nil && !s.told && err.Error() != checkpoint.SkippedThrottled {
		s.told = true
		s.app.warn("a checkpoint failed while the command was running: %v", err)
	}
}

// maxHeld limits the paths that are kept for the next checkpoint while checkpoints fail or
// come too soon.
const maxHeld = 1 << 14

// process runs the command and returns its exit code.
func (s *supervised) process(ctx context.Context, path string, args []string, signals <-chan os.Signal) (int, error) {
	settings, err := s.app.settings()
	if err != nil {
		return 0, err
	}
	out, errOut := s.app.out, s.app.err
	if s.printed != nil {
		out, errOut = io.MultiWriter(out, s.printed.of(0)), io.MultiWriter(errOut, s.printed.of(1))
	}
	cmd := &supervise.Command{
		Path: path, Args: args, Dir: s.app.workspace, In: s.app.in, Out: out, Err: errOut,
		Signals: signals, Terminal: isTerminal(s.app.in),
		Watch: s.p.space.Path(), Quiet: time.Duration(settings.number("run.quiet_ms")) * time.Millisecond,
		Beat: lookEvery,
	}
	code, err := cmd.Run(ctx, s)
	return code, started(err)
}

// Started ties the turn to the command as well.
func (s *supervised) Started(ctx context.Context, pid int) {
	if command, ok := checkpoint.ProcessOf(pid, s.command); ok {
		s.hold(ctx, command)
	}
}

// Quiet makes a checkpoint of a burst of changes.
func (s *supervised) Quiet(ctx context.Context, paths []string) { s.burst(ctx, paths) }

// Beat says that the turn goes on, or begins another one after an agent.
func (s *supervised) Beat(ctx context.Context) {
	if s.away(ctx) {
		s.resumed(ctx, false)
		return
	}
	if time.Since(s.held) < heartbeat {
		return
	}
	s.held = time.Now()
	_ = s.p.space.Hold(ctx, s.conv.ID(), s.by) // the next one will do
}

// hold also ties the turn to the command, which goes on if this process is killed.
func (s *supervised) hold(ctx context.Context, command checkpoint.Process) {
	s.by.Processes = append(s.by.Processes, command)
	if err := s.p.space.Hold(ctx, s.conv.ID(), s.by); err != nil {
		s.app.warn("if this process is killed, the command's later changes count as yours: %v", err)
	}
}

// record saves the run as a turn of the conversation.
func (s *supervised) record(ctx context.Context, code int) error {
	output := &agentv1.ShellOutput{ExitCode: int32(code)}
	if s.printed != nil {
		output.Stdout, output.Stderr = s.printed.text(0), s.printed.text(1)
	}
	turn, err := conversation.NewShellTurn(&agentv1.ShellCommand{Command: s.command}, output)
	if err != nil {
		return err
	}
	for again := false; ; {
		if err := s.conv.AppendTurn(ctx, turn); err != nil {
			return err
		}
		save, err := s.conv.Save(ctx, &conversation.SaveOptions{Author: author()})
		if err == nil {
			s.root = save.Root
		}
		switch {
		case errors.Is(err, conversation.ErrStale):
			// Another run of the conversation began or ended meanwhile. Each writes once,
			// so this ends.
		case errors.Is(err, conversation.ErrNotFound) && !again:
			again = true // the run that created it was interrupted or did nothing, and removed it
		default:
			return err
		}
		conv, _, err := openOrCreate(ctx, s.p.db.Conversations(), s.conv.Info())
		if err != nil {
			return err
		}
		s.conv = conv
	}
}

// report prints what the run changed and how to revert it.
func (s *supervised) report(ctx context.Context, code int) error {
	a := s.app
	changes, err := workspace.Diff(ctx, s.p.db.Blobs(), s.first.Tree, s.last.Tree)
	if err != nil {
		return err
	}
	n := len(linediff.Files(changes, nil))
	s.tellGone()
	if a.json {
		conv, turn := s.conv.ID(), s.turn
		if s.empty {
			conv, turn = "", 0
		}
		return a.printJSON(map[string]any{
			"schema": "stet.run.v1", "conversation": conv, "turn": turn, "before": s.first.ID, "after": s.last.ID,
			"files": n, "exit_code": code, "ignored_changed": namesJSON(s.ignored), "repositories_lost": namesJSON(s.lost),
			"sessions": s.sessionsJSON(),
		})
	}
	if len(s.ignored) > 0 {
		a.warn("%s", ignoredText(s.ignored))
	}
	if len(s.lost) > 0 {
		a.warn("%s", repositoriesText(s.lost))
	}
	if s.empty && len(s.sessions) == 0 {
		a.say("stet: nothing changed")
		return nil
	}
	a.say("stet: %s to %s  %s changed · revert: %s", s.first.Name(), s.last.Name(), plural(int64(n), "file"), s.revert())
	return nil
}
