// Package attempt keeps what 'stet try' did: each attempt of an agent in a copy of a
// workspace is a branch of the workspace's history. It promises that the history of the
// workspace itself, and what it says about authors, stays as it is, and that a branch that
// was begun can be read whatever became of its process.
//
// A branch is a conversation of the workspace, with labels for the result, and with
// checkpoints that are listed under it as imported ones are: they are no part of the
// sequence of the directory. Nothing about it has a stored form of its own.
//
//	run, err := attempt.Begin(ctx, keeper, attempt.Plan{Try: id, Number: 1, Base: rec, …})
//	err = run.Capture(ctx, tree)
//	err = run.End(ctx, attempt.Result{Tree: tree, Exit: code})
//	list, err := attempt.List(ctx, conversations, "/src/shop")
//
// Making copies and running agents is left to the caller, and so is bringing the files of a
// branch into the workspace.
package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Errors of this package.
var (
	// ErrNotOne says that a conversation is not an attempt.
	ErrNotOne = fault.New(fault.Invalid, "not a branch of 'stet try'")
	// ErrForgotten says that checkpoints of a branch are no longer kept.
	ErrForgotten = fault.New(fault.NotFound, "checkpoints of the branch are no longer kept")
	// ErrNoTry says that nothing is kept of a try.
	ErrNoTry = fault.Named(fault.NotFound, "try-not-found", "no attempts of this try are kept")
)

// Labels of the conversation of an attempt.
const (
	labelTry     = "try"         // the try that it is a part of
	labelNumber  = "try.number"  // of the attempt in it
	labelBase    = "try.base"    // id of the checkpoint that it began with
	labelExit    = "try.exit"    // exit code; absent while it runs
	labelEnd     = "try.end"     // why it ended, if not by itself
	labelScore   = "try.score"   // a number
	labelMillis  = "try.ms"      // how long the agent took
	labelChanges = "try.changes" // files, added and removed lines
	labelWords   = "try.words"   // the conversation with what the agent said
)

// Max is how many attempts one try may have.
const Max = 64

// Keeper is where attempts are kept.
type Keeper struct {
	Checkpoints   *checkpoint.Service
	Conversations *conversation.Store
}

// Plan is an attempt that is about to begin.
type Plan struct {
	// Try is the id that the attempts of one try have in common, and Number counts them
	// from 1.
	Try    string
	Number int
	// Base is the checkpoint whose files the copy has, in the workspace at the path.
	Base      *checkpoint.Record
	Workspace string
	// Command is what runs, as it was given, and Agent the name of the agent.
	Command, Agent, Author string
}

// ID returns the id of the branch.
func (p *Plan) ID() string { return branchID(p.Try, p.Number) }

func branchID(try string, number int) string { return fmt.Sprintf("try-%s-%d", try, number) }

// Run is an attempt under way. It is not safe for concurrent use.
type Run struct {
	keep  Keeper
	plan  Plan
	conv  *conversation.Conversation
	began time.Time
	taken []checkpoint.Imported
}

// Begin records that an attempt begins.
func Begin(ctx context.Context, keep Keeper, plan Plan) (*Run, error) {
	conv, err := keep.Conversations.Create(ctx, conversation.Info{
		ID: plan.ID(), Title: plan.Command, Agent: plan.Agent, Workspace: plan.Workspace,
		Labels: map[string]string{labelTry: plan.Try, labelNumber: strconv.Itoa(plan.Number), labelBase: plan.Base.ID},
	})
	if err != nil {
		return nil, fmt.Errorf("begin attempt: %w", err)
	}
	r := &Run{keep: keep, plan: plan, conv: conv, began: time.Now()}
	return r, r.add(ctx, plan.Base.Tree, checkpoint.Before, blob.ID{})
}

// ID returns the id of the branch.
func (r *Run) ID() string { return r.conv.ID() }

// Capture adds a checkpoint of the files as they are while the agent works. Files that are
// those of the last one add nothing.
func (r *Run) Capture(ctx context.Context, tree blob.ID) error {
	if tree == r.taken[len(r.taken)-1].Tree {
		return nil
	}
	return r.add(ctx, tree, checkpoint.NoSide, blob.ID{})
}

func (r *Run) add(ctx context.Context, tree blob.ID, side checkpoint.Side, root blob.ID) error {
	r.taken = append(r.taken, checkpoint.Imported{
		Source: fmt.Sprintf("%s%s:%d", checkpoint.BranchSource, r.plan.ID(), len(r.taken)+1),
		Turn:   1, Side: side, Root: root, Time: time.Now(), Tree: tree,
	})
	_, err := r.keep.Checkpoints.AddImported(ctx, r.conv.ID(), r.plan.Workspace, r.plan.Author, r.taken)
	return err
}

// Result is how an attempt ended.
type Result struct {
	Tree blob.ID
	Exit int
	// End says why the agent was ended, such as "time is over"; empty if it ended by itself.
	End string
	// Score is what the score command said; nil if there is none.
	Score    *float64
	Duration time.Duration
	// Files, Added and Removed compare with the base.
	Files, Added, Removed int
	// Words is the conversation in which a connected agent's words are, or empty.
	Words string
	// Stdout and Stderr are what the agent printed.
	Stdout, Stderr string
}

// End records the result of an attempt.
func (r *Run) End(ctx context.Context, res Result) error {
	turn, err := conversation.NewShellTurn(&agentv1.ShellCommand{Command: r.plan.Command},
		&agentv1.ShellOutput{ExitCode: int32(res.Exit), Stdout: res.Stdout, Stderr: res.Stderr})
	if err != nil {
		return fmt.Errorf("end attempt: %w", err)
	}
	if err := r.conv.AppendTurn(ctx, turn); err != nil {
		return fmt.Errorf("end attempt: %w", err)
	}
	save, err := r.conv.Save(ctx, &conversation.SaveOptions{Author: r.plan.Author})
	if err != nil {
		return fmt.Errorf("end attempt: %w", err)
	}
	if err := r.add(ctx, res.Tree, checkpoint.After, save.Root); err != nil {
		return fmt.Errorf("end attempt: %w", err)
	}
	labels := [][2]string{
		{labelEnd, res.End}, {labelMillis, strconv.FormatInt(res.Duration.Milliseconds(), 10)}, {labelWords, res.Words},
		{labelChanges, fmt.Sprintf("%d %d %d", res.Files, res.Added, res.Removed)},
	}
	if res.Score != nil {
		labels = append(labels, [2]string{labelScore, strconv.FormatFloat(*res.Score, 'g', -1, 64)})
	}
	for _, l := range append(labels, [2]string{labelExit, strconv.Itoa(res.Exit)}) { // the exit code says that all is there
		if err := r.keep.Conversations.SetLabel(ctx, r.conv.ID(), l[0], l[1]); err != nil {
			return fmt.Errorf("end attempt: %w", err)
		}
	}
	return nil
}

// Attempt is a branch as it is kept.
type Attempt struct {
	ID, Try string
	Number  int
	// Base is the id of the checkpoint that it began with.
	Base      string
	Workspace string
	Command   string
	Agent     string
	Began     time.Time
	// Ended is false while it runs, and after its process was killed. The rest is zero then.
	Ended                 bool
	Exit                  int
	End                   string
	Score                 *float64
	Duration              time.Duration
	Files, Added, Removed int
	Words                 string
}

// Of reads an attempt from the record of its conversation. It returns false if that is not
// one.
func Of(info conversation.Info) (Attempt, bool) {
	l := info.Labels
	number, err := strconv.Atoi(l[labelNumber])
	if l[labelTry] == "" || err != nil {
		return Attempt{}, false
	}
	a := Attempt{
		ID: info.ID, Try: l[labelTry], Number: number, Base: l[labelBase], Workspace: info.Workspace, Command: info.Title,
		Agent: info.Agent, Began: info.Created, End: l[labelEnd], Words: l[labelWords],
	}
	if code, err := strconv.Atoi(l[labelExit]); err == nil {
		a.Exit, a.Ended = code, true
	}
	if score, err := strconv.ParseFloat(l[labelScore], 64); err == nil {
		a.Score = &score
	}
	if ms, err := strconv.ParseInt(l[labelMillis], 10, 64); err == nil {
		a.Duration = time.Duration(ms) * time.Millisecond
	}
	if n, err := fmt.Sscanf(l[labelChanges], "%d %d %d", &a.Files, &a.Added, &a.Removed); err != nil || n != 3 {
		a.Files, a.Added, a.Removed = 0, 0, 0
	}
	return a, true
}

// List returns the attempts of a workspace, those of the latest try first, and each try in
// the order of its numbers.
func List(ctx context.Context, conversations *conversation.Store, workspace string) ([]Attempt, error) {
	var all []Attempt
	opts := &conversation.ListOptions{Workspace: workspace, Limit: 1000, Match: func(info conversation.Info) bool {
		_, ok := Of(info)
		return ok
	}}
	for {
		page, err := conversations.List(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("list attempts: %w", err)
		}
		for _, info := range page.Conversations {
			a, _ := Of(info)
			all = append(all, a)
		}
		if opts.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	began := make(map[string]time.Time) // of each try
	for _, a := range all {
		if at, ok := began[a.Try]; !ok || a.Began.Before(at) {
			began[a.Try] = a.Began
		}
	}
	slices.SortFunc(all, func(a, b Attempt) int {
		return cmp.Or(began[b.Try].Compare(began[a.Try]), strings.Compare(a.Try, b.Try), cmp.Compare(a.Number, b.Number))
	})
	return all, nil
}

// Get returns the attempt with an id.
func Get(ctx context.Context, conversations *conversation.Store, id string) (Attempt, error) {
	info, err := conversations.Get(ctx, id)
	if err != nil {
		return Attempt{}, err
	}
	a, ok := Of(info)
	if !ok {
		return Attempt{}, fmt.Errorf("%w: %s", ErrNotOne, id)
	}
	return a, nil
}

// Ends returns the first and the last checkpoint of a branch.
func Ends(ctx context.Context, checkpoints *checkpoint.Service, id string) (base, last *checkpoint.Record, err error) {
	for rec, err := range checkpoints.ListConversation(ctx, id) {
		var unread *checkpoint.UnreadableError
		if errors.As(err, &unread) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if !strings.HasPrefix(rec.Source, checkpoint.BranchSource) {
			continue // made when its files were adopted
		}
		if last == nil {
			last = rec
		}
		base = rec
	}
	if base == nil || base.Side != checkpoint.Before {
		return nil, nil, fmt.Errorf("%w: %s", ErrForgotten, id)
	}
	return base, last, nil
}
