package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/transcript"
)

// talkTurnJSON is a turn of a conversation in show.
type talkTurnJSON struct {
	Turn        uint64 `json:"turn"`
	StartedAt   string `json:"started_at,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"`
	Automatic   bool   `json:"automatic,omitempty"`
	spentJSON
}

type talkJSON struct {
	conversationJSON
	// EachTurn has the turns about which something is known.
	EachTurn []talkTurnJSON `json:"each_turn,omitempty"`
}

// showConversation shows what was said and done in a conversation, turn by turn.
func (a *app) showConversation(ctx context.Context, p *place, id string) error {
	info, err := p.db.Conversations().Get(ctx, id)
	if err != nil {
		return err
	}
	reader := p.timeline()
	details, err := reader.Details(ctx, id, blob.ID{})
	if err != nil {
		return err
	}
	spent, err := reader.Spent(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		value := talkJSON{conversationJSON: infoJSON(info)}
		value.spentJSON = newSpentJSON(spent)
		for n := uint64(1); n <= info.Turns; n++ {
			if d := details[n]; d != nil {
				value.EachTurn = append(value.EachTurn, talkTurnJSON{
					Turn: n, StartedAt: stamp(d.Started), Interrupted: d.Interrupted, Automatic: d.Automatic, spentJSON: newSpentJSON(timeline.SpentOf(d)),
				})
			}
		}
		if err := a.printJSON(value); err != nil {
			return err
		}
		return lostRoots(ctx, p.db, id, info.Root)
	}
	head, err := a.conversationHead(ctx, p, info, spent)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(a.out)
	fmt.Fprint(w, head)
	err = a.talk(ctx, p, w, id, details)
	return errors.Join(err, w.Flush())
}

// conversationHead introduces a conversation, the one that started it and its subagents.
func (a *app) conversationHead(ctx context.Context, p *place, info conversation.Info, spent timeline.Spent) (string, error) {
	paint := a.paint()
	head := fmt.Sprintf("%s  %s  %s  %s\n", paint.yellow(a.short(info.ID)), paint.bold(fmt.Sprintf("%q", clip(titleOf(info), 60))),
		clip(info.Agent, 20), plural(int64(info.Turns), "turn"))
	if words := spentWords(spent); words != "" {
		head += paint.dim(words) + "\n"
	}
	related, err := p.timeline().Related(ctx, info.ID)
	if err != nil {
		return "", err
	}
	if parent := info.SubagentOf(); parent != "" {
		head += "subagent of  " + paint.yellow(printable(parent)) + "\n"
	}
	for _, sub := range slices.Backward(related.Subagents) { // oldest first
		room := 60
		if isTerminal(a.out) {
			room = min(room, max(10, a.width()-15-columns(printable(sub.ID))))
		}
		head += "subagent     " + paint.yellow(printable(sub.ID)) + "  " + clip(titleOf(sub), room) + "\n"
	}
	return head, nil
}

// talk writes the messages of a conversation: texts as they are, tool calls and thoughts
// in one line each.
func (a *app) talk(ctx context.Context, p *place, w *bufio.Writer, id string, details map[uint64]*conversation.TurnDetails) error {
	t, err := transcript.New(p.db.Conversations(), p.db.Blobs()).Conversation(ctx, id)
	if err != nil {
		return err
	}
	turn := 0
	opts := &transcript.Options{WithoutHeavyOutput: true, WithoutSubagents: true, Lenient: true}
	for m, err := range t.Messages(ctx, opts) {
		if err != nil {
			return err
		}
		if m.Subagent != "" {
			continue // in the conversation of the subagent, or in an export
		}
		if m.Turn != turn && m.Turn > 0 {
			turn = m.Turn
			fmt.Fprint(w, a.turnHead(m, details[uint64(turn)]))
		}
		if _, err := w.WriteString(a.messageText(m)); err != nil {
			return err
		}
	}
	return nil
}

// turnHead begins a turn: its number, when it began, and what it took.
func (a *app) turnHead(m transcript.Message, d *conversation.TurnDetails) string {
	paint := a.paint()
	head := "\n" + paint.bold(fmt.Sprintf("turn %d", m.Turn))
	at := m.Time
	if d != nil && !d.Started.IsZero() {
		at = d.Started
	}
	if !at.IsZero() {
		head += "  " + paint.dim(when(at, now()))
	}
	if note := turnNote(d); note != "" {
		head += "  " + paint.dim(note)
	}
	return head + "\n"
}

// turnNote is what the agent's record says about a turn.
func turnNote(d *conversation.TurnDetails) string {
	words := spentWords(timeline.SpentOf(d))
	if d != nil && d.Interrupted {
		words = strings.TrimPrefix(words+" · interrupted", " · ")
	}
	return words
}

// messageText shows a message of a talk.
func (a *app) messageText(m transcript.Message) string {
	paint := a.paint()
	switch m.Kind {
	case transcript.Thinking:
		return paint.dim(clip("(thinking) "+m.Text, a.width())) + "\n"
	case transcript.ToolCall:
		return paint.dim(clip("* "+callText(m.Tool), a.width())) + "\n"
	case transcript.Shell:
		return paint.cyan(indented("$ ", m.Text)) + indented("  ", m.Tool.Output)
	case transcript.Summary:
		return paint.dim(indented("(summary) ", m.Text))
	case transcript.Failure:
		return paint.red("("+printable(m.Text)+")") + "\n"
	}
	if m.Simulated {
		return paint.dim(indented("", m.Words()))
	}
	if m.Role == transcript.User {
		return paint.cyan(indented("> ", m.Text))
	}
	return indented("", m.Text)
}

// indented writes each line of a text behind a prefix.
func indented(prefix, text string) string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return ""
	}
	return prefix + strings.ReplaceAll(printableLines(text), "\n", "\n"+prefix) + "\n"
}

// callText describes the call of a tool: its name, what it was about, and how it ended.
func callText(t *transcript.Tool) string {
	words := []string{t.Name, callSubject(t)}
	if t.Added+t.Removed > 0 {
		words = append(words, fmt.Sprintf("+%d -%d", t.Added, t.Removed))
	}
	switch {
	case t.Exit != 0:
		words = append(words, fmt.Sprintf("(exit code %d)", t.Exit))
	case t.Status != transcript.Succeeded:
		words = append(words, "("+string(t.Status)+")")
	}
	if t.Subagent != "" {
		words = append(words, "-> "+t.Subagent)
	}
	return strings.Join(words, " ")
}

// callSubject is the argument of a call that says most about it.
func callSubject(t *transcript.Tool) string {
	input, _ := t.Input.(map[string]any)
	for _, name := range []string{"command", "file_path", "filePath", "path", "query", "pattern", "url", "description", "prompt"} {
		if text, ok := input[name].(string); ok && text != "" {
			return text
		}
	}
	return t.Path
}
