package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/foreign/cursor"
)

// foreignDetail is what show adds to ls.
type foreignDetail struct {
	Mode        string           `json:"mode,omitempty"`
	Version     int              `json:"version"`
	Root        string           `json:"root,omitempty"`
	Turns       int              `json:"turns"`
	Children    []string         `json:"children,omitempty"`
	Checkpoints int              `json:"checkpoints"`
	Originals   []string         `json:"originals,omitempty"`
	Messages    []foreignMessage `json:"messages"`
	Problems    []string         `json:"problems,omitempty"`
}

type foreignMessage struct {
	ID        string `json:"id"`
	Role      string `json:"role"`
	Text      string `json:"text,omitempty"`
	Thinking  string `json:"thinking,omitempty"`
	Tool      string `json:"tool,omitempty"`
	Status    string `json:"status,omitempty"`
	CreatedAt string `json:"created_at,omitempty"`
	Orphan    bool   `json:"orphan,omitempty"`
	Problem   string `json:"problem,omitempty"`
}

// showForeign shows a conversation of another program's store. Unreadable parts are
// reported, and the rest is shown.
func (a *app) showForeign(ctx context.Context, src *cursor.Store, name string) error {
	id, err := foreignID(ctx, src, name)
	if err != nil {
		return err
	}
	conv, err := src.Conversation(ctx, id)
	if err != nil {
		return err
	}
	value := foreignHeader(conv.Header)
	value.foreignDetail = &foreignDetail{
		Mode: conv.Mode, Version: conv.Version, Children: conv.Children, Originals: sortedKeys(conv.Originals), Messages: []foreignMessage{},
	}
	problem := func(err error) {
		if err != nil {
			value.Problems = append(value.Problems, printable(err.Error()))
		}
	}
	problem(conv.StateErr)
	for _, err := range conv.Problems {
		problem(err)
	}
	if conv.State != nil {
		value.Root = conv.State.ID.String()
		state, err := conv.State.Decode()
		problem(err)
		value.Turns = len(state.GetTurnsOld()) + len(state.GetTurns())
	}
	for _, err := range src.Checkpoints(ctx, conv) {
		if err != nil {
			return err
		}
		value.Checkpoints++
	}
	for msg, err := range src.Messages(ctx, conv) {
		if err != nil {
			return err
		}
		value.Messages = append(value.Messages, foreignMessageJSON(msg))
	}
	return a.print(value, a.foreignText(value))
}

func foreignMessageJSON(m cursor.Message) foreignMessage {
	out := foreignMessage{ID: m.ID, Role: m.Role.String(), Text: m.Text, Thinking: m.Thinking, Orphan: m.Orphan}
	if m.Tool != nil {
		out.Tool, out.Status = m.Tool.Name, m.Tool.Status
	}
	if !m.Created.IsZero() {
		out.CreatedAt = stamp(m.Created)
	}
	if m.Problem != nil {
		out.Problem = printable(m.Problem.Error())
	}
	return out
}

func (a *app) foreignText(v foreignJSON) string {
	p := a.paint()
	var text strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%s  %s\n", p.dim(pad(name, 12)), value)
		}
	}
	line("conversation", p.yellow(printable(v.ID)))
	line("title", printable(v.Title))
	line("workspace", printable(v.Workspace))
	line("created", v.CreatedAt)
	line("updated", v.UpdatedAt)
	line("parent", printable(v.Parent))
	line("subagents", few(v.Children, 10))
	line("root", v.Root)
	if v.Turns > 0 {
		line("state", plural(int64(v.Turns), "turn"))
	}
	if v.Checkpoints > 0 {
		line("checkpoints", fmt.Sprint(v.Checkpoints))
	}
	line("originals", few(v.Originals, 10))
	for _, problem := range v.Problems {
		line("problem", problem)
	}
	if len(v.Messages) > 0 {
		text.WriteString("\n")
	}
	for _, m := range v.Messages {
		said := m.Text
		switch {
		case m.Problem != "":
			said = "(" + m.Problem + ")"
		case said == "" && m.Tool != "":
			said = "[" + strings.TrimSpace(m.Tool+" "+m.Status) + "]"
		case said == "" && m.Thinking != "":
			said = m.Thinking
		}
		line(m.Role, clip(strings.Join(strings.Fields(printable(said)), " "), 200))
	}
	return text.String()
}
