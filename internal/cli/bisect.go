package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/bisect"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/internal/room"
	"github.com/stet-dev/stet/internal/supervise"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/workspace"
)

// bisectFlags are the flags of a search.
type bisectFlags struct {
	good, bad string
	roomFlags
}

// roomFlags are the flags of verbs that run commands in rooms.
type roomFlags struct {
	jobs    int
	timeout time.Duration
	links   []string

	memory, fileSize string
	processes        int
}

func (f *roomFlags) add(cmd *cobra.Command, jobs string) {
	countFlag(cmd.Flags(), &f.jobs, "jobs", "j", 0, jobs)
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "end the command, and everything that it started, after this time, such as 90s or 5m")
	cmd.Flags().StringVar(&f.memory, "max-memory", "", "memory limit for each process of the command, such as 4GB (Linux only)")
	cmd.Flags().StringVar(&f.fileSize, "max-file", "", "largest size of a file that the command writes, such as 1GB (Linux only)")
	countFlag(cmd.Flags(), &f.processes, "max-processes", "", 0, "limit on the number of all your processes, checked when the command starts one (Linux only; not for root)")
	cmd.Flags().StringArrayVar(&f.links, "link", nil, "link this path of the workspace into each copy, such as node_modules (repeatable)")
}

// bounds returns what the commands may take.
func (f *roomFlags) bounds() (bounds, error) {
	b := bounds{time: f.timeout, limits: supervise.Limits{Processes: uint64(f.processes)}}
	for _, size := range []struct {
		flag, text string
		into       *uint64
	}{{"max-memory", f.memory, &b.limits.Memory}, {"max-file", f.fileSize, &b.limits.FileSize}} {
		n, err := parseSize(size.text)
		if err != nil || n < 0 {
			return b, usage(fmt.Errorf("--%s: %q is not a size, such as 4GB", size.flag, size.text))
		}
		*size.into = uint64(n)
	}
	if b.limits != (supervise.Limits{}) && !supervise.CanLimit {
		return b, supervise.ErrNoLimits
	}
	return b, nil
}

// atOnce is how many commands run beside each other.
func (f *roomFlags) atOnce() int { return cmp.Or(f.jobs, runtime.NumCPU()) }

func (a *app) bisectCommand() *cobra.Command {
	var flags bisectFlags
	cmd := &cobra.Command{
		Use:     "bisect [--good REF] [--bad REF] -- CMD [ARG…]",
		Short:   "Find the turn that broke something",
		GroupID: groupLook,
		Long: `Find the checkpoint at which a command begins to fail, by binary search. CMD runs in copies
of checkpoints, each in its own directory; the workspace is not touched. Its exit code
decides, as with 'git bisect run': 0 is good, 125 means that this state cannot be tested,
other codes up to 127 are bad, and any other code ends the search. 126 and 127 at the good
end mean that CMD itself cannot be run. A command that does not end within --timeout is bad.

Without --good, the search begins at the first checkpoint of the workspace; without --bad,
it ends at the current files. Both ends are tested first. Work that a rewind took back is
left out, and states with equal files are tested once. Several states are tested at the same
time (--jobs; by default one for each processor). If the edits of a turn are recorded
exactly, the search continues down to a single edit.

A copy has the files of its checkpoint: no .git, and no ignored files. If CMD needs other
paths, link them with --link; all copies then share these with the workspace. Copies are
made in the user's cache directory and removed at the end, even after an interrupt; the next
bisect removes those of a killed one. The limits of your shell (ulimit) apply to CMD;
--max-memory, --max-file and --max-processes set tighter ones (Linux only). $STET_CHECKPOINT
holds the name of the checkpoint.

Exit code 0 means that the checkpoint was found, and 3 that only a range was found, because
states in it cannot be tested.`,
		Example: `  stet bisect -- go test ./...
  stet bisect --good c5 --timeout 2m --link node_modules -- npm test
  stet bisect --json -- make check | jq -r .first_bad.name`,
		Args: needsCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPlace(cmd.Context(), false, func(p *place) error {
				return p.withLook(cmd.Context(), func(l look) error {
					return a.bisect(cmd.Context(), p, l, flags, args)
				})
			})
		},
	}
	cmd.Flags().StringVar(&flags.good, "good", "", "checkpoint at which the command succeeds (default: the first)")
	cmd.Flags().StringVar(&flags.bad, "bad", "@", "checkpoint at which the command fails (default: the current files)")
	flags.add(cmd, "number of copies to test at once (0: one for each processor)")
	cmd.Flags().SetInterspersed(false)
	for _, name := range []string{"good", "bad"} {
		_ = cmd.RegisterFlagCompletionFunc(name, a.completeRefs(1)) // fails for unknown flags only
	}
	return cmd
}

// bisecting is a running search.
type bisecting struct {
	app   *app
	p     *place
	look  look
	flags bisectFlags
	args  []string
	most  bounds
	rooms *room.Rooms

	states []bisectState
	tests  int

	mu     sync.Mutex
	output map[string]*keptOutput // of bad tests, by tree; guarded by mu
}

// bisectState is a state to be tested.
type bisectState struct {
	side
	forgotten uint64 // checkpoints right before it that are no longer kept
	edit      *exactEdit
}

func (s *bisectState) label() string {
	switch {
	case s.edit != nil:
		return s.edit.label()
	case s.rec == nil:
		return "working tree"
	}
	return strings.TrimSpace(s.rec.Name() + "  " + describe(s.rec))
}

func (a *app) bisect(ctx context.Context, p *place, l look, flags bisectFlags, args []string) (err error) {
	b := &bisecting{app: a, p: p, look: l, flags: flags, args: args, output: make(map[string]*keptOutput)}
	if b.most, err = flags.bounds(); err != nil {
		return err
	}
	if b.states, err = a.bisectStates(ctx, p, l, flags.good, flags.bad); err != nil {
		return err
	}
	b.rooms, err = room.Open(l.blobs, room.Options{Workspace: p.space.Path(), Links: flags.links})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.rooms.Close()) }()
	found, err := b.search(ctx, b.states)
	if err != nil {
		return b.explain(err)
	}
	step, err := b.narrow(ctx, found)
	if err != nil {
		return err
	}
	return b.report(ctx, found, step)
}

// search tests states until the first bad one is known.
func (b *bisecting) search(ctx context.Context, states []bisectState) (bisect.Found, error) {
	opts := bisect.Options{Jobs: b.flags.atOnce(), Tested: func(i int, v bisect.Verdict) {
		b.app.say("%s  %s", pad(v.String(), 4), states[i].label())
	}}
	for i := range states {
		opts.Keys = append(opts.Keys, states[i].tree.String())
	}
	found, err := bisect.Run(ctx, opts, func(ctx context.Context, i int) (bisect.Verdict, error) {
		return b.test(ctx, &states[i], i == 0 && states[i].edit == nil)
	})
	b.tests += found.Tests
	return found, err
}

// test runs the command in a copy of a state.
func (b *bisecting) test(ctx context.Context, s *bisectState, goodEnd bool) (v bisect.Verdict, err error) {
	in, err := b.rooms.Make(ctx, s.tree)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, in.Remove()) }()
	printed := &keptOutput{}
	code, err := runIn(ctx, in.Path(), b.args, b.most, printed, "STET_CHECKPOINT="+s.name)
	switch {
	case errors.Is(err, errTimeOver):
	case err != nil:
		return 0, err
	case code == 0:
		return bisect.Good, nil
	case code == 125:
		return bisect.Skip, nil
	case code > 127:
		return 0, fmt.Errorf("search stopped: the command ended with exit code %d at %s%s", code, s.label(), lastWords(printed))
	case goodEnd && code >= 126:
		return 0, coded(code, "the command cannot be run: exit code %d at %s, the good end%s", code, s.label(), lastWords(printed))
	}
	if err := b.rooms.Full(); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.output[s.tree.String()] = printed
	return bisect.Bad, nil
}

// explain says what is wrong with the ends.
func (b *bisecting) explain(err error) error {
	first, last := &b.states[0], &b.states[len(b.states)-1]
	switch {
	case errors.Is(err, bisect.ErrBadEnd):
		return coded(ExitUsage, "the command succeeds at the bad end (%s): nothing to find", last.label())
	case errors.Is(err, bisect.ErrGoodEnd):
		text := fmt.Sprintf("the command already fails at the good end (%s)", first.label())
		if first.rec != nil && first.forgotten > 0 {
			text += fmt.Sprintf("; the history begins there: %s before it are no longer kept", plural(int64(first.forgotten), "checkpoint"))
		}
		return coded(ExitUsage, "%s; name an earlier state or fix the command%s", text, lastWords(b.output[first.tree.String()]))
	case errors.Is(err, bisect.ErrTooFew):
		return coded(ExitUsage, "%s and %s have the same files: nothing to search", first.label(), last.label())
	}
	return err
}

// bisectStates lists the states from the good end to the bad end, oldest first. What a
// rewind took back is left out, unless an end is there.
func (a *app) bisectStates(ctx context.Context, p *place, l look, good, bad string) ([]bisectState, error) {
	conv, err := a.known(ctx, p)
	if err != nil {
		return nil, err
	}
	history, err := p.history(ctx, conv)
	if err != nil {
		return nil, err
	}
	if len(history.Damaged) > 0 {
		a.warn("skipped %s that cannot be read", plural(int64(len(history.Damaged)), "checkpoint"))
	}
	last, err := l.side(ctx, bad, conv)
	if err != nil {
		return nil, err
	}
	var first *checkpoint.Record
	if good != "" {
		if first, err = l.space.Resolve(ctx, good, conv); err != nil {
			return nil, err
		}
		if first == nil {
			return nil, coded(ExitUsage, "the good end is the working tree; nothing comes after it")
		}
		if last.rec != nil && first.ID > last.rec.ID {
			return nil, coded(ExitUsage, "the good end, %s, is later than the bad end, %s", first.Name(), last.rec.Name())
		}
	}
	isEnd := func(rec *checkpoint.Record) bool {
		return first != nil && rec.ID == first.ID || last.rec != nil && rec.ID == last.rec.ID
	}
	branches := map[int]bool{0: true}
	for _, e := range history.Entries {
		if isEnd(e.Record) {
			branches[e.Branch] = true
		}
	}
	var states []bisectState
	for i := len(history.Entries) - 1; i >= 0; i-- {
		e := history.Entries[i]
		rec := e.Record
		if first != nil && rec.ID < first.ID || last.rec != nil && rec.ID > last.rec.ID {
			continue
		}
		if !isEnd(rec) && (!branches[e.Branch] || rec.Kind == checkpoint.Safety || rec.Kind == checkpoint.Import) {
			continue
		}
		states = append(states, bisectState{side: side{rec: rec, tree: rec.Tree, name: rec.Name()}, forgotten: e.Forgotten})
	}
	if last.rec == nil {
		last.name = "@"
		states = append(states, bisectState{side: last})
	}
	return distinct(states), checkEnds(states, first, last.rec)
}

// checkEnds fails if an end is not among the states, as one of another directory, or if there
// is nothing between the ends.
func checkEnds(states []bisectState, first, last *checkpoint.Record) error {
	for _, end := range []*checkpoint.Record{first, last} {
		found := end == nil
		for i := range states {
			found = found || states[i].rec != nil && states[i].rec.ID == end.ID
		}
		if !found {
			return coded(ExitUsage, "%s is not a checkpoint of this history", end.Name())
		}
	}
	switch {
	case len(states) > 1:
		return nil
	case first != nil:
		return coded(ExitUsage, "the good end and the bad end are both %s: nothing to search", first.Name())
	case last != nil:
		return coded(ExitUsage, "no checkpoint comes before the bad end, %s: nothing to search", last.Name())
	}
	return coded(ExitNotFound, "no checkpoints to search; 'stet run' and connected agents create them")
}

// distinct leaves out states with the files of the one before.
func distinct(states []bisectState) []bisectState {
	var out []bisectState
	for _, s := range states {
		if n := len(out); n > 0 && out[n-1].tree == s.tree {
			continue
		}
		out = append(out, s)
	}
	if len(out) == 1 && len(states) > 1 { // let the search say so
		out = append(out, states[len(states)-1])
	}
	return out
}

// lastWords returns the end of what a command printed, for an error.
func lastWords(k *keptOutput) string {
	if !k.any() {
		return ""
	}
	const most = 10
	lines := strings.Split(strings.TrimRight(k.text(0)+k.text(1), "\n"), "\n")
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return "\n  " + strings.Join(lines, "\n  ")
}

// changes compares two states.
func (b *bisecting) changes(ctx context.Context, from, to *bisectState) ([]workspace.Change, error) {
	changes, err := workspace.Diff(ctx, b.look.blobs, from.tree, to.tree)
	return linediff.Files(changes, nil), err
}

// commandEnv is the environment of a command in a copy.
func commandEnv(dir string, more ...string) []string {
	return append(append(os.Environ(), "PWD="+dir), more...)
}
