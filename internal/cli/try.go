package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/internal/attempt"
	"github.com/stet-dev/stet/internal/room"
	"github.com/stet-dev/stet/internal/supervise"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/workspace"
)

// tryFlags are the flags of a try.
type tryFlags struct {
	from, score, agent string
	list               bool
	roomFlags
}

func (a *app) tryCommand() *cobra.Command {
	var flags tryFlags
	cmd := &cobra.Command{
		Use:     "try N [--from REF] [--score CMD] -- AGENT [ARG…]",
		Short:   "Run an agent several times, each time in its own copy of the workspace",
		GroupID: groupStart,
		Long: `Run a command N times side by side, each in its own copy of the workspace, and compare
the results. Nothing in the workspace changes. Each attempt is kept as a branch of the
history, with checkpoints, output and result; 'stet adopt BRANCH' brings the files of the
best one into the workspace. 'stet try 1' is a run that changes nothing until you adopt it.

A copy has the files of a checkpoint: the one that --from names, or one that is made now. It
has no .git and no ignored files; --link adds links to paths of the workspace, such as
node_modules, which all copies then share. --score runs a shell command in each copy after
the agent. The score is the number on the last line of its output; if there is none, it is
1 for exit code 0, and 0 otherwise. --timeout ends an agent and everything that it started;
--max-memory, --max-file and --max-processes limit their resources (Linux only).

Only the directory is a copy. An attempt has your rights, your $HOME with its credentials
and settings, your network and ports, and the same files elsewhere. Agents that listen on
the same port, or change files outside their copy, get in each other's way. If the
workspace itself changed during a try, stet names the changes at the end. The command gets
no input; $STET_TRY holds its number. Messages and tokens are recorded only for connected
agents ('stet connect').

Branches are conversations: 'stet log BRANCH', 'stet show BRANCH' and 'stet rm BRANCH' work,
and retention removes their checkpoints like any others ('stet config explain gc').
'stet try --list' lists the attempts that are kept. With one attempt, the exit code is that
of the command; with several, it is 0 if at least one of them succeeded, and 1 otherwise.`,
		Example: `  stet try 3 --score 'go test ./... >/dev/null' -- claude -p 'fix the flaky test'
  stet try 1 --timeout 10m -- codex exec 'upgrade the router'
  stet try --list`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case flags.list && len(args) == 0:
				return nil
			case flags.list:
				return errors.New("--list takes no arguments")
			case len(args) == 0:
				return errors.New("an argument is missing") // explainArgs names it
			case len(args) == 1:
				return errors.New("AGENT is missing")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPlace(cmd.Context(), !flags.list, func(p *place) error {
				if flags.list {
					return a.listAttempts(cmd.Context(), p)
				}
				n, err := strconv.Atoi(args[0])
				if err != nil || n < 1 || n > attempt.Max {
					return usage(fmt.Errorf("%q is not a number from 1 to %d", args[0], attempt.Max))
				}
				return a.try(cmd.Context(), p, flags, n, args[1:])
			})
		},
	}
	cmd.Flags().StringVar(&flags.from, "from", "@", "checkpoint that the copies start from")
	cmd.Flags().StringVar(&flags.score, "score", "", "shell command that scores each copy")
	cmd.Flags().StringVar(&flags.agent, "agent", "", "name of the agent in lists")
	cmd.Flags().BoolVar(&flags.list, "list", false, "list the attempts that are kept")
	flags.add(cmd, "number of attempts to run at once (0: all)")
	_ = cmd.RegisterFlagCompletionFunc("from", a.completeRefs(1)) // fails for unknown flags only
	return cmd
}

// trying is a try under way.
type trying struct {
	app   *app
	p     *place
	flags tryFlags
	args  []string
	base  *checkpoint.Record
	rooms *room.Rooms
	scan  workspace.Options
	most  bounds
	keep  attempt.Keeper
	id    string

	mu  sync.Mutex
	all []attempt.Attempt // guarded by mu
}

func (a *app) try(ctx context.Context, p *place, flags tryFlags, n int, args []string) (err error) {
	if err := checkAgent(flags.agent); err != nil {
		return err
	}
	if _, err := supervise.Find(args[0], p.space.Path()); err != nil {
		return started(err)
	}
	most, err := flags.bounds()
	if err != nil {
		return err
	}
	_, opts, err := a.checkpoints(p.db)
	if err != nil {
		return err
	}
	t := &trying{
		most: most,
		app:  a, p: p, flags: flags, args: args, scan: opts.Scan, id: strings.ToLower(rand.Text()[:6]),
		keep: attempt.Keeper{Checkpoints: p.service, Conversations: p.db.Conversations()},
	}
	for _, link := range flags.links { // it is not a part of the copy
		t.scan.Exclude = append(slices.Clone(t.scan.Exclude), "/"+filepath.ToSlash(filepath.Clean(link)))
	}
	if t.base, err = a.tryBase(ctx, p, flags.from); err != nil {
		return err
	}
	before, err := p.space.Outline(ctx)
	if err != nil {
		return err
	}
	if t.rooms, err = room.Open(p.db.Blobs(), room.Options{Workspace: p.space.Path(), Links: flags.links}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.rooms.Close()) }()
	var group errgroup.Group // one that fails does not end the others
	if flags.jobs > 0 {
		group.SetLimit(flags.jobs)
	}
	for i := range n {
		group.Go(func() error { return t.attempt(ctx, i+1) })
	}
	failed := group.Wait()
	t.tellOutside(context.WithoutCancel(ctx), before.Tree)
	return errors.Join(t.report(context.WithoutCancel(ctx)), failed, ctx.Err(), t.exit())
}

// exit returns the exit code of the whole.
func (t *trying) exit() error {
	best := -1
	for _, one := range t.all {
		if best < 0 || one.Exit == 0 {
			best = one.Exit
		}
	}
	switch {
	case best <= 0:
		return nil
	case len(t.all) > 1:
		best = ExitError
	}
	return silentExit{best}
}

// tryBase returns the checkpoint that the copies begin with. The present is saved first,
// unless the latest checkpoint has its files.
func (a *app) tryBase(ctx context.Context, p *place, ref string) (*checkpoint.Record, error) {
	conv, err := a.known(ctx, p)
	if err != nil {
		return nil, err
	}
	rec, err := p.space.Resolve(ctx, ref, conv)
	if err != nil || rec != nil {
		return rec, err
	}
	now, err := p.space.Present(ctx)
	if err != nil {
		return nil, err
	}
	if last, err := p.latest(ctx); err != nil || last != nil && last.Tree == now.Tree {
		return last, err
	}
	res, err := p.space.Checkpoint(ctx, checkpoint.Request{Author: author(), Label: "before a try"})
	if err != nil {
		return nil, err
	}
	if res.Record == nil {
		return nil, fmt.Errorf("nothing was started: %s", res.Skipped)
	}
	return res.Record, nil
}

// attempt runs the agent once.
func (t *trying) attempt(ctx context.Context, number int) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	in, err := t.rooms.Make(ctx, t.base.Tree)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Remove()) }()
	run, err := attempt.Begin(ctx, t.keep, attempt.Plan{
		Try: t.id, Number: number, Base: t.base, Workspace: t.p.space.Path(), Command: foreign.CommandLine(t.args...), Agent: agentOf(t.flags.agent, t.args[0]), Author: author(),
	})
	if err != nil {
		return err
	}
	t.say("%s  began in %s", run.ID(), tilde(in.Path()))
	w := &watched{t: t, run: run, dir: in.Path(), index: workspace.NewIndex(t.base.Tree)}
	res, err := t.work(ctx, w, number)
	if err != nil {
		return err
	}
	kept := context.WithoutCancel(ctx) // what was done is kept after an interrupt, too
	if res.Tree, err = w.capture(kept); err != nil {
		return err
	}
	if err := t.measure(kept, &res, in.Path()); err != nil {
		return err
	}
	if err := run.End(kept, res); err != nil {
		return err
	}
	one, err := attempt.Get(kept, t.keep.Conversations, run.ID())
	if err != nil {
		return err
	}
	t.say("%s  %s", run.ID(), endText(one))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, one)
	return nil
}

// say prints a message of one of several attempts.
func (t *trying) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.app.say(format, args...)
}

// work runs the agent, and the command that scores it.
func (t *trying) work(ctx context.Context, w *watched, number int) (attempt.Result, error) {
	settings, err := t.app.settings()
	if err != nil {
		return attempt.Result{}, err
	}
	var res attempt.Result
	printed, began := &keptOutput{}, time.Now()
	// The branch has the checkpoints: hooks of a connected agent only bring its words.
	env := []string{"STET_TRY=" + strconv.Itoa(number), "STET_CAPTURE_ENABLED=false"}
	quiet := time.Duration(settings.number("run.quiet_ms")) * time.Millisecond
	res.Exit, err = runWatched(ctx, w.dir, t.args, t.most, printed, w, quiet, env...)
	res.Duration = time.Since(began)
	switch {
	case errors.Is(err, errTimeOver):
		res.End, res.Exit = "time is over", 124
	case errors.Is(err, context.Canceled):
		res.End, res.Exit = "interrupted", ExitInterrupted
	case err != nil:
		return res, err
	}
	if err := t.rooms.Full(); err != nil {
		t.say("%v", err)
	}
	if t.flags.score != "" && ctx.Err() == nil {
		if res.Score, err = t.score(ctx, w.dir); err != nil {
			return res, err
		}
	}
	res.Stdout, res.Stderr = printed.text(0), printed.text(1)
	return res, nil
}

// score runs the command that scores a copy.
func (t *trying) score(ctx context.Context, dir string) (*float64, error) {
	printed := &keptOutput{}
	code, err := runIn(ctx, dir, []string{"sh", "-c", t.flags.score}, t.most, printed)
	if err != nil && !errors.Is(err, errTimeOver) {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(printed.text(0)), "\n")
	score, parseErr := strconv.ParseFloat(strings.TrimSpace(lines[len(lines)-1]), 64)
	if parseErr != nil || err != nil || math.IsNaN(score) || math.IsInf(score, 0) { // these are no scores: nothing compares with them
		score = 0
		if code == 0 && err == nil {
			score = 1
		}
	}
	return &score, nil
}

// measure compares a result with its base, and finds the words of a connected agent.
func (t *trying) measure(ctx context.Context, res *attempt.Result, dir string) error {
	changes, err := workspace.Diff(ctx, t.p.db.Blobs(), t.base.Tree, res.Tree)
	if err != nil {
		return err
	}
	for _, c := range linediff.Files(changes, nil) {
		f, err := linediff.Compare(ctx, t.p.db.Blobs(), c)
		if err != nil {
			return err
		}
		res.Files, res.Added, res.Removed = res.Files+1, res.Added+f.Added, res.Removed+f.Removed
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	page, err := t.keep.Conversations.List(ctx, &conversation.ListOptions{Workspace: dir})
	if err == nil && len(page.Conversations) > 0 {
		res.Words = page.Conversations[0].ID
	}
	return err
}

// tellOutside names what changed in the workspace itself meanwhile.
func (t *trying) tellOutside(ctx context.Context, before blob.ID) {
	now, err := t.p.space.Outline(ctx)
	if err != nil {
		t.app.warn("cannot tell whether the workspace changed: %v", err)
		return
	}
	changes, err := workspace.Diff(ctx, t.p.db.Blobs(), before, now.Tree)
	if err != nil || len(changes) == 0 {
		return // a tree of an outline may be gone; then it differs, or not, as before
	}
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	t.app.warn("changed in the workspace itself during the try, by you or by an attempt outside its copy: %s", few(paths, 10))
}

// watched makes checkpoints of a copy while an agent works in it.
type watched struct {
	t     *trying
	run   *attempt.Run
	dir   string
	index *workspace.Index
	told  bool
}

// capture stores the files of the copy as they are.
func (w *watched) capture(ctx context.Context) (blob.ID, error) {
	if _, err := os.Lstat(w.dir); os.IsNotExist(err) { // the agent removed it
		if err := os.Mkdir(w.dir, 0o700); err != nil {
			return blob.ID{}, err
		}
	}
	res, err := workspace.Scan(ctx, w.t.p.db.Blobs(), w.dir, w.index, &w.t.scan)
	if err != nil {
		return blob.ID{}, err
	}
	w.index = res.Index
	return res.Tree, nil
}

// Started does nothing: nothing of the workspace depends on the process.
func (w *watched) Started(context.Context, int) {}

// Beat does nothing.
func (w *watched) Beat(context.Context) {}

// Quiet makes a checkpoint of a burst of changes. It reports a failure once; the checkpoint
// at the end shows whether all is well.
func (w *watched) Quiet(ctx context.Context, _ []string) {
	tree, err := w.capture(ctx)
	if err == nil {
		err = w.run.Capture(ctx, tree)
	}
	if err != nil && !w.told {
		w.told = true
		w.t.say("%s: a checkpoint failed: %v", w.run.ID(), err)
	}
}
