package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
	history, err := reader.Read(ctx, timeline.Scope{Workspace: checkpoint.WorkspaceID(root), Conversation: e.Session})
	if err != nil {
		return err
	}
	var known []uint64
	_ = json.Unmarshal([]byte(info.Labels[labelNoticed]), &known) // nothing is known if it is not ours
	out, at := takenBack(history)
	text := noticeText(out, known, at)
	if text == "" {
		return nil
	}
	now, err := json.Marshal(out)
	if err != nil {
		return err
	}
	// It is kept first: to be told twice would confuse more than not to be told.
	if err := db.Conversations().SetLabel(ctx, e.Session, labelNoticed, string(now)); err != nil {
		return err
	}
	_, err = a.notices.Write(adapter.Notice(text))
	return err
}

// takenBack returns the turns of a history that are not in the files, in order, and when
// the last of them was taken back.
func takenBack(history *timeline.History) (out []uint64, at time.Time) {
	stands := map[uint64]bool{}
	turns := history.Turns()
	for _, t := range turns {
		stands[t.Turn] = stands[t.Turn] || t.Branch == 0
	}
	out = []uint64{}
	for _, t := range turns {
		if stands[t.Turn] || slices.Contains(out, t.Turn) {
			continue
		}
		out = append(out, t.Turn)
		if left := t.Checkpoints[0].LeftAt; left.After(at) {
			at = left
		}
	}
	slices.Sort(out)
	return out, at
}

// noticeText says what changed for the agent, or "".
func noticeText(out, known []uint64, at time.Time) string {
	without := func(list, others []uint64) []uint64 {
		return slices.DeleteFunc(slices.Clone(list), func(n uint64) bool { return slices.Contains(others, n) })
	}
	var lines []string
	if gone := without(out, known); len(gone) > 0 {
		to := fmt.Sprintf("after turn %d", gone[0]-1)
		if gone[0] == 1 {
			to = "before turn 1"
		}
		lines = append(lines, fmt.Sprintf("the user rewound the files to %s at %s; %s of this conversation %s no longer in the files",
			to, at.Local().Format("15:04"), turnNumbers(gone), areOrIs(gone)))
	}
	if back := without(known, out); len(back) > 0 {
		lines = append(lines, fmt.Sprintf("the user undid a rewind; %s of this conversation %s in the files again", turnNumbers(back), areOrIs(back)))
	}
	if len(lines) == 0 {
		return ""
	}
	return "stet: " + strings.Join(lines, "; ")
}

func areOrIs(turns []uint64) string {
	if len(turns) == 1 {
		return "is"
	}
	return "are"
}

// turnNumbers names turns, as in "turn 3", "turns 3 and 4" and "turns 3 to 7".
func turnNumbers(turns []uint64) string {
	first, last := turns[0], turns[len(turns)-1]
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
		words[i] = fmt.Sprint(turns[i])
	}
	return fmt.Sprintf("turns %s and %d", strings.Join(words, ", "), last)
}
