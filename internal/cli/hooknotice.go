package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/timeline"
)

// labelNoticed keeps with a conversation which of its turns the agent knows to be out of
// the files.
const labelNoticed = "noticed_rewind"

// hookNotice lets the model know that turns which it still holds were taken back, or are
// in the files again, since its last prompt. It is the only thing that a hook prints, once
// for each change.
func (a *app) hookNotice(ctx context.Context, db *stet.DB, adapter foreign.Adapter, e foreign.Event) error {
	if a.notices == nil || e.Kind != foreign.TurnStart || e.Subagent != "" || adapter.Notice("x") == nil {
		return nil
	}
	info, err := db.Conversations().Get(ctx, e.Session)
	if err != nil {
		return nil // a new session holds nothing
	}
	dir, err := filepath.EvalSymlinks(e.Workspace)
	if err != nil {
		return nil // the event itself fails with it
	}
	root, err := a.workspaceAbove(ctx, db, dir)
	if err != nil {
		return err
	}
	reader := timeline.New(db.Checkpoints(), db.Conversations())
	reverted, err := reader.Reverted(ctx, checkpoint.WorkspaceID(root), e.Session)
	if err != nil {
		return err
	}
	var known []uint64
	_ = json.Unmarshal([]byte(info.Labels[labelNoticed]), &known) // nothing is known if it is not ours
	n := newNotice(reverted, known)
	if slices.Equal(n.out, known) {
		return nil
	}
	if err := n.explain(ctx, reader, db.Checkpoints(), e.Session); err != nil {
		return err
	}
	now, err := json.Marshal(n.out)
	if err != nil {
		return err
	}
	// It is kept first: to be told twice would confuse more than not to be told.
	if err := db.Conversations().SetLabel(ctx, e.Session, labelNoticed, string(now)); err != nil {
		return err
	}
	if text := n.text(adapter.Name()); text != "" {
		_, err = a.notices.Write(adapter.Notice(text))
	}
	return err
}

// notice is what an agent does not know yet.
type notice struct {
	out        []uint64            // all turns that are not in the files
	gone, back []timeline.Reverted // news
	place      string              // where the latest operation of gone went, "" if nothing names it
	rest       []string            // files that may still have changes of gone
}

// newNotice compares what was reverted with the turns that the agent knows to be out.
func newNotice(reverted []timeline.Reverted, known []uint64) notice {
	n := notice{out: []uint64{}}
	for _, t := range reverted {
		if t.Out {
			n.out = append(n.out, t.Turn)
		}
		switch told := slices.Contains(known, t.Turn); {
		case t.Out && !told:
			n.gone = append(n.gone, t)
		case !t.Out && told:
			n.back = append(n.back, t)
		}
	}
	return n
}

// explain finds out where the files went and what is left of the turns.
func (n *notice) explain(ctx context.Context, reader *timeline.Reader, checkpoints *checkpoint.Service, session string) (err error) {
	if len(n.gone) == 0 {
		return nil
	}
	op := latest(n.gone)
	if n.rest, err = reader.Remaining(ctx, n.gone, op); err != nil || op.Kind != checkpoint.OpRewind {
		return err
	}
	target, err := checkpoints.Get(ctx, op.Target)
	switch {
	case errors.Is(err, checkpoint.ErrNotFound): // it was forgotten
		return nil
	case err != nil || target.Conversation != session && !slices.Contains(op.Origins, target.Conversation):
		return err
	case target.Side == checkpoint.NoSide && target.Turn != 0:
		n.place = "a checkpoint in " + target.Place()
	default:
		n.place = target.Place()
	}
	return nil
}

// latest returns the latest operation that concerns turns.
func latest(turns []timeline.Reverted) *checkpoint.Operation {
	return slices.MaxFunc(turns, func(a, b timeline.Reverted) int { return cmp.Compare(a.By.Seq, b.By.Seq) }).By
}

// text says what changed for an agent, or "".
func (n *notice) text(agent string) string {
	var lines []string
	if len(n.gone) > 0 {
		line := fmt.Sprintf("%s; %s of this conversation %s no longer in the files", did(latest(n.gone), n.place, agent), turnNumbers(n.gone), areOrIs(n.gone))
		if len(n.rest) > 0 {
			line += ", but parts may be left in " + printable(few(n.rest, 3))
		}
		lines = append(lines, line)
	}
	if len(n.back) > 0 {
		lines = append(lines, fmt.Sprintf("%s; %s of this conversation %s in the files again", did(latest(n.back), "", agent), turnNumbers(n.back), areOrIs(n.back)))
	}
	if len(lines) == 0 {
		return ""
	}
	return "stet: " + strings.Join(lines, "; ")
}

// did says what an operation did. Agents have tools for it, too.
func did(op *checkpoint.Operation, place, agent string) string {
	who := "the user"
	if op.Author == agent {
		who = "an agent"
	}
	what := map[string]string{checkpoint.OpUndo: "undid a rewind", checkpoint.OpRedo: "redid a rewind"}[op.Kind]
	if what == "" {
		what = "rewound the files"
	}
	if place != "" {
		what += " to " + place
	}
	return fmt.Sprintf("%s %s at %s", who, what, op.Time.Local().Format("15:04"))
}

func areOrIs(turns []timeline.Reverted) string {
	if len(turns) == 1 {
		return "is"
	}
	return "are"
}

// turnNumbers names turns, as in "turn 3", "turns 3 and 4" and "turns 3 to 7".
func turnNumbers(turns []timeline.Reverted) string {
	first, last := turns[0].Turn, turns[len(turns)-1].Turn
	switch {
	case len(turns) == 1:
		return fmt.Sprintf("turn %d", first)
	case len(turns) == 2:
		return fmt.Sprintf("turns %d and %d", first, last)
	case last-first == uint64(len(turns)-1):
		return fmt.Sprintf("turns %d to %d", first, last)
	}
	words := make([]string, len(turns)-1)
	for i := range words {
		words[i] = fmt.Sprint(turns[i].Turn)
	}
	return fmt.Sprintf("turns %s and %d", strings.Join(words, ", "), last)
}
