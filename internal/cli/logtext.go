package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/workspace"
)

// printLog draws the tree.
func (a *app) printLog(ctx context.Context, p *place, history *timeline.History, shown []*timeline.Entry) error {
	heads, err := a.logHeads(ctx, p, shown)
	if err != nil {
		return err
	}
	now := ""
	if !p.ofImported(shown[0].Record) { // else the working tree is another one
		if now, err = a.presentLine(ctx, p, shown); err != nil {
			return err
		}
	}
	rows, err := a.logRows(ctx, history, shown)
	if err != nil {
		return err
	}
	var lines []string
	for _, row := range rows {
		lines = append(append(lines, row.line), row.below...)
	}
	_, err = fmt.Fprint(a.out, heads+now+strings.Join(lines, "\n")+"\n")
	return err
}

// logHeads introduces the conversations that appear.
func (a *app) logHeads(ctx context.Context, p *place, shown []*timeline.Entry) (string, error) {
	paint := a.paint()
	var ids []string
	for _, e := range shown {
		if id := e.Record.Conversation; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	var text strings.Builder
	for _, id := range ids {
		info, err := p.db.Conversations().Get(ctx, id)
		if errors.Is(err, conversation.ErrNotFound) {
			fmt.Fprintf(&text, "%s\n", paint.yellow(printable(id)))
			continue
		}
		if err != nil {
			return "", err
		}
		branches, err := p.db.Conversations().Branches(ctx, id)
		if err != nil {
			return "", err
		}
		kept := ""
		if n := len(branches) - 1; n > 0 {
			kept = fmt.Sprintf(" · %d kept %s", n, map[bool]string{true: "branch", false: "branches"}[n == 1])
		}
		text.WriteString(a.logHead(info, kept))
	}
	if text.Len() > 0 {
		text.WriteString("\n")
	}
	return text.String(), nil
}

// logHead is the line of a conversation above the log. Where the terminal is too narrow
// for it, it lacks the directory, which is mostly this one, and the title is shortened.
func (a *app) logHead(info conversation.Info, kept string) string {
	paint := a.paint()
	title, agent, turns := clip(titleOf(info), 60), clip(info.Agent, 20), plural(int64(info.Turns), "turn")+kept
	place := tilde(printable(info.Workspace)) + "  "
	if isTerminal(a.out) {
		room := a.width() - columns(a.short(info.ID)+"    "+agent+"  "+turns) - 2 // beside the title with its quotes
		if columns(title)+columns(place) > room {
			place = ""
		}
		title = clip(title, max(6, room))
	}
	return fmt.Sprintf("%s  %s  %s  %s%s\n", paint.yellow(a.short(info.ID)), paint.bold(fmt.Sprintf("%q", title)), agent, place, turns)
}

// presentLine compares the workspace with its latest checkpoint, and names the entry that
// stands for it in the log.
func (a *app) presentLine(ctx context.Context, p *place, log []*timeline.Entry) (string, error) {
	paint := a.paint()
	last, err := p.latest(ctx)
	if err != nil || last == nil {
		return "", err
	}
	var changes []workspace.Change
	err = p.withLook(ctx, func(l look) error {
		res, err := l.space.Outline(ctx)
		if err != nil {
			return err
		}
		changes, err = workspace.Diff(ctx, l.blobs, last.Tree, res.Tree)
		return err
	})
	if err != nil {
		return "", err
	}
	var names []string
	for _, c := range linediff.Files(changes, nil) {
		names = append(names, c.Path)
	}
	like := "the last checkpoint"
	if e := timeline.Like(log, last); e != nil {
		like = e.Record.Name()
	}
	note := "as in " + like
	if len(names) > 0 {
		note = fmt.Sprintf("differs from %s in %s (%s)", like, plural(int64(len(names)), "file"), few(names, 3))
	}
	at := when(now(), now()) + "  working tree  "
	if width, _ := terminalSize(a.out); width > 0 {
		note = cut(note, width-4-columns(at))
	}
	return fmt.Sprintf("%s   %s%s\n", paint.bold(paint.green("@")), at, paint.dim(note)), nil
}

// logRow is an entry as drawn: its line, and the lines between it and the next.
type logRow struct {
	line  string
	below []string
}

// logRows draws the entries, in columns.
func (a *app) logRows(ctx context.Context, history *timeline.History, shown []*timeline.Entry) ([]logRow, error) {
	texts := make([][]string, len(shown))
	turns, several := make([]*timeline.Turn, len(shown)), severalConversations(shown)
	for i, e := range shown {
		turn, err := history.Turn(ctx, e)
		if err != nil {
			return nil, err
		}
		changed := timeline.Changes{Files: e.Record.FilesChanged, Added: e.Record.LinesAdded, Removed: e.Record.LinesRemoved, Partial: e.Record.LinesPartial}
		if e.Folded > 0 {
			if changed, err = history.Whole(ctx, e); err != nil {
				return nil, err
			}
		}
		turns[i] = turn
		texts[i] = []string{
			e.Record.Name(), when(e.Record.Time, now()), placeText(e.Record), titleText(e, turn),
			plural(int64(changed.Files), "file"), linesChanged(changed.Added, changed.Removed, changed.Partial), a.lineTail(e, turn, several),
		}
	}
	graph := newGraph(shown)
	widths := columnWidths(texts, 6)
	room := a.width() - graph.width - 4
	for i, w := range widths {
		if i != 3 {
			room -= w + 2
		}
	}
	if isTerminal(a.out) {
		room -= min(14, slices.Max(columnWidths(texts, 7)[6:])) // so that the tools are not cut off by long titles
	}
	widths[3] = min(widths[3], max(12, min(room, 60)))
	rows := make([]logRow, len(shown))
	for i, e := range shown {
		texts[i][3] = clip(texts[i][3], widths[3])
		if tail := texts[i][6]; tail != "" && isTerminal(a.out) && a.lineEnd(graph, widths)+columns(tail) > a.width() {
			rows[i].below = append(rows[i].below, a.below(graph, i, tail))
			texts[i][6] = ""
		}
		rows[i].line = a.logLine(e, a.glyphs(graph, i, e), graph.width, texts[i], widths)
		if words := spentLine(e, turns[i]); words != "" {
			rows[i].below = append(rows[i].below, a.below(graph, i, words))
		}
		if e.Forgotten > 0 {
			rows[i].below = append(rows[i].below, a.paint().dim(pad(":", graph.width)+plural(int64(e.Forgotten), "checkpoint")+" no longer kept"))
		}
		for _, join := range graph.joins(i) {
			rows[i].below = append(rows[i].below, a.paint().dim(join))
		}
	}
	return rows, nil
}

// lineEnd returns where the tails of lines begin.
func (a *app) lineEnd(graph *logGraph, widths []int) int {
	end := graph.width
	for _, w := range widths {
		end += w + 2
	}
	return end
}

func (a *app) logLine(e *timeline.Entry, glyphs string, taken int, row []string, widths []int) string {
	p := a.paint()
	room := math.MaxInt
	if isTerminal(a.out) {
		room = a.width() - taken // beside the glyphs
	}
	line := glyphs
	for i, text := range row {
		if i < len(widths) {
			text = pad(text, widths[i]) + "  "
		}
		if room -= columns(text); room < 0 {
			text = cut(strings.TrimRight(text, " "), room+columns(text))
			room = 0
		}
		switch {
		case i == 0:
			text = p.yellow(text)
		case i == 1, i == 3 && e.Left, i == len(widths):
			text = p.dim(text)
		}
		line += text
	}
	return strings.TrimRight(line, " ")
}

// placeText returns the turn of a checkpoint.
func placeText(rec *checkpoint.Record) string {
	switch {
	case rec.Turn == 0 || rec.Kind == checkpoint.Rewound:
		return ""
	case rec.Side == checkpoint.Before:
		return fmt.Sprintf("before %d", rec.Turn)
	}
	return fmt.Sprintf("turn %d", rec.Turn)
}

// titleText returns the title of a checkpoint.
func titleText(e *timeline.Entry, turn *timeline.Turn) string {
	rec := e.Record
	switch {
	case e.Operation != "":
		return e.Operation
	case rec.Label != "":
		return rec.Label
	case turnText(turn) != "":
		return turnText(turn)
	case rec.Parent == "":
		return "first checkpoint"
	}
	return rec.Found()
}

// linesChanged returns how many lines changed, or "" if none were counted. Of many files
// not all are counted.
func linesChanged(added, removed uint64, partial bool) string {
	if added+removed == 0 {
		return ""
	}
	text := fmt.Sprintf("+%d -%d", added, removed)
	if partial {
		text += " or more"
	}
	return text
}

// turnWords describes the whole turn of its newest checkpoint: how its command failed, what
// several checkpoints found together, and how long it took if no line below says it.
func turnWords(e *timeline.Entry, turn *timeline.Turn) (words []string) {
	total := e.Total
	if total == nil {
		return nil
	}
	if turn.Exit != 0 {
		words = append(words, fmt.Sprintf("exit %d", turn.Exit))
	}
	if total.Files > e.Record.FilesChanged && e.Folded == 0 {
		words = append(words, strings.TrimSpace("in all "+plural(int64(total.Files), "file")+" "+linesChanged(total.Added, total.Removed, total.Partial)))
	}
	if turn.Duration > 0 && spentLine(e, turn) == "" {
		words = append(words, "took "+duration(turn.Duration))
	}
	return words
}

// spentLine says what the whole turn of its newest checkpoint took, or "" if nothing but
// its duration is known.
func spentLine(e *timeline.Entry, turn *timeline.Turn) string {
	if e.Total == nil || turn.Model == "" && turn.Tokens() == 0 && turn.CostUSD == nil {
		return ""
	}
	if turn.Interrupted {
		return spentWords(turn.Spent) + " · interrupted"
	}
	return spentWords(turn.Spent)
}

// lineTail returns the optional parts of a line.
func (a *app) lineTail(e *timeline.Entry, turn *timeline.Turn, several bool) string {
	var parts []string
	for _, name := range e.Pins {
		parts = append(parts, "pin:"+printable(name))
	}
	if tools := turn.ToolWords(); len(tools) > 0 {
		parts = append(parts, strings.Join(tools, " "))
	} else if e.Record.Tool != "" {
		parts = append(parts, clip(e.Record.Tool, 20))
	}
	parts = append(parts, turnWords(e, turn)...)
	if several && e.Record.Conversation != "" {
		parts = append(parts, a.short(e.Record.Conversation))
	}
	if e.Left {
		parts = append(parts, "rewound "+when(e.LeftAt, now())+", kept")
	}
	return strings.Join(parts, "  ")
}

func severalConversations(shown []*timeline.Entry) bool {
	var first string
	for _, e := range shown {
		if id := e.Record.Conversation; id != "" {
			if first != "" && id != first {
				return true
			}
			first = id
		}
	}
	return false
}

// logSaves shows the history of a conversation that has no checkpoints here.
func (a *app) logSaves(ctx context.Context, p *place, id string) error {
	info, err := p.db.Conversations().Get(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) {
		return nothingNamed(id, aConversation)
	}
	if err != nil {
		return err
	}
	paint, reader := a.paint(), p.timeline()
	spent, err := reader.Spent(ctx, id)
	if err != nil {
		return err
	}
	head, err := a.conversationHead(ctx, p, info, spent)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out, head)
	var roots []blob.ID
	for save, err := range p.db.Conversations().History(ctx, id, &conversation.HistoryOptions{Newest: true}) {
		if err != nil {
			return err
		}
		roots = append(roots, save.Root)
		turn, err := reader.TurnOf(ctx, save)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "o   %s  %s  %s  %s\n", paint.dim(when(save.Time, now())), pad(plural(int64(save.Turns), "turn"), 8), clip(turnText(turn), 60), paint.dim(save.Kind.String()))
		if words := spentWords(turn.Spent); words != "" {
			fmt.Fprintln(a.out, paint.dim("|   "+words))
		}
	}
	return lostRoots(ctx, p.db, id, roots...)
}

// turnText is the prompt of a turn.
func turnText(t *timeline.Turn) string {
	if t.Damaged {
		return "(cannot be read; see 'stet fsck')"
	}
	return t.Text()
}
