package transcript

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"
)

// writeMarkdown writes a document in which every text stays in its place: the user's
// text is quoted, tool output is fenced, and the agent's text is made safe.
func writeMarkdown(ctx context.Context, w *bufio.Writer, t *Transcript, opts *Options) error {
	mdHead(w, t)
	turn, subagent := 0, ""
	for m, err := range t.Messages(ctx, opts) {
		if err != nil {
			return err
		}
		if m.Turn != turn && m.Turn > 0 && m.Subagent == "" {
			fmt.Fprintf(w, "## Turn %d\n\n", m.Turn)
			turn = m.Turn
			if note := opts.note(turn); note != "" {
				fmt.Fprintf(w, "%s\n\n", CodeSpan(note))
			}
		}
		if m.Subagent != subagent && m.Subagent != "" {
			fmt.Fprintf(w, "### Subagent %s\n\n", CodeSpan(m.Subagent))
		}
		subagent = m.Subagent
		mdMessage(w, m)
		if _, err := w.WriteString("\n"); err != nil {
			return err
		}
	}
	return nil
}

func mdHead(w *bufio.Writer, t *Transcript) {
	a := t.about()
	title := a.Title
	if title == "" {
		title = "Conversation"
	}
	fmt.Fprintf(w, "# %s\n\n", escapeMarkdown(title))
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "- %s: %s\n", name, CodeSpan(value))
		}
	}
	field("Conversation", a.ID)
	field("Agent", a.Agent)
	field("Workspace", a.Workspace)
	field("Created", clock(a.Created))
	field("Updated", clock(a.Updated))
	field("Root", a.Root)
	fmt.Fprintf(w, "- Turns: %d\n\n", a.Turns)
}

func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// heading returns the speaker and the time.
func heading(m Message) string {
	name := map[Role]string{User: "User", Assistant: "Assistant", System: "Note"}[m.Role]
	switch {
	case m.Kind == Thinking:
		name = "Thinking"
	case m.Kind == Summary:
		name = "Summary of what came before"
	case m.Kind == Failure:
		name = "Not readable"
	case m.Kind == Shell:
		name = "User ran"
	case m.Simulated:
		name = "Automatic"
	}
	if at := clock(m.Time); at != "" {
		name += " · " + at
	}
	return name
}

func mdMessage(w *bufio.Writer, m Message) {
	switch m.Kind {
	case ToolCall:
		mdTool(w, m)
	case Shell:
		fmt.Fprintf(w, "### %s\n\n%s", heading(m), Fence("sh", "$ "+m.Text))
		mdResult(w, m.Tool)
	case Text:
		fmt.Fprintf(w, "### %s\n\n", heading(m))
		if m.Role == Assistant {
			w.WriteString(safeMarkdown(m.Text))
		} else {
			w.WriteString(quote(m.Words()))
		}
	default:
		fmt.Fprintf(w, "### %s\n\n%s", heading(m), quote(m.Text))
	}
}

func mdTool(w *bufio.Writer, m Message) {
	t := m.Tool
	fmt.Fprintf(w, "### Tool %s", CodeSpan(t.Name))
	if t.Path != "" {
		fmt.Fprintf(w, " %s", CodeSpan(t.Path))
	}
	if t.Added+t.Removed > 0 {
		fmt.Fprintf(w, " (+%d −%d)", t.Added, t.Removed)
	}
	fmt.Fprintf(w, " · %s", t.Status)
	if at := clock(m.Time); at != "" {
		fmt.Fprintf(w, " · %s", at)
	}
	w.WriteString("\n\n")
	if t.Input != nil {
		w.WriteString(Fence("json", indented(t.Input)))
	}
	mdResult(w, t)
}

func mdResult(w *bufio.Writer, t *Tool) {
	if t.Diff != "" {
		w.WriteString("\n" + Fence("diff", t.Diff))
	}
	if t.Output != "" {
		w.WriteString("\n" + Fence("text", t.Output))
	}
	if t.Exit != 0 {
		fmt.Fprintf(w, "\nExit code %d\n", t.Exit)
	}
	if t.Omitted > 0 {
		fmt.Fprintf(w, "\n%d bytes left out\n", t.Omitted)
	}
}

// Fence returns text as a code block of Markdown that the text cannot end.
func Fence(language, text string) string {
	text = Visible(text)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	ticks := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return ticks + language + "\n" + text + ticks + "\n"
}

// CodeSpan returns text as code within a line of Markdown.
func CodeSpan(text string) string {
	text = oneLine(text)
	ticks := strings.Repeat("`", longestRun(text, '`')+1)
	if len(ticks) > 1 || strings.HasPrefix(text, " ") || strings.TrimSpace(text) == "" {
		return ticks + " " + text + " " + ticks
	}
	return ticks + text + ticks
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// quote quotes text unchanged, so that it reads as typed.
func quote(text string) string {
	var b strings.Builder
	for line := range strings.Lines(Fence("text", text)) {
		b.WriteString("> " + line)
	}
	return b.String()
}

// escapeMarkdown escapes all Markdown in a text.
func escapeMarkdown(text string) string {
	var b strings.Builder
	for _, r := range oneLine(text) {
		if strings.ContainsRune("\\`*_{}[]<>()#+-.!|~&:", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
