package transcript

import (
	"bufio"
	"context"
	"io"
)

// The lines of a transcript. The order of the fields is the reference's.
type (
	line struct {
		Role    Role        `json:"role"`
		Message lineMessage `json:"message"`
	}
	lineMessage struct {
		Content []any `json:"content"`
	}
	textPart struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	toolPart struct {
		Type  string `json:"type"`
		Name  string `json:"name"`
		Input any    `json:"input"`
	}
	endLine struct {
		Type   string `json:"type"`
		Status string `json:"status"`
	}
	errorLine struct {
		Type  string `json:"type"`
		Error string `json:"error"`
	}
)

// lineWriter writes messages as lines. A text begins a line, and the calls after it
// belong to the same line.
type lineWriter struct {
	w    io.Writer
	open line // not written yet
	turn int  // of the last message, 0 if there was none
	live bool // the last message is a pending call
}

// write adds the next message. This form has no thinking and no summaries.
func (l *lineWriter) write(m Message) error {
	if m.Kind == Thinking || m.Kind == Summary {
		return nil
	}
	if m.Turn != l.turn {
		if err := l.endTurn(); err != nil {
			return err
		}
		l.turn = m.Turn
	}
	l.live = m.Kind == ToolCall && (m.Tool.Status == Pending || m.Tool.Status == Running)
	switch m.Kind {
	case Failure:
		if err := l.flush(); err != nil {
			return err
		}
		return l.put(errorLine{"error", m.Text})
	case ToolCall:
		return l.call(m.Tool)
	case Shell:
		return l.text(User, "$ "+joined(m.Text, m.Tool.Output))
	}
	return l.text(m.Role, m.Text)
}

func (l *lineWriter) text(role Role, text string) error {
	if err := l.flush(); err != nil {
		return err
	}
	l.open = line{Role: role, Message: lineMessage{Content: []any{textPart{"text", text}}}}
	if role == User {
		return l.flush()
	}
	return nil
}

func (l *lineWriter) call(t *Tool) error {
	input := t.Input
	if input == nil {
		input = map[string]any{}
	}
	l.open.Role = Assistant
	l.open.Message.Content = append(l.open.Message.Content, toolPart{"tool_use", t.Name, input})
	return nil
}

// flush writes the open line.
func (l *lineWriter) flush() error {
	if len(l.open.Message.Content) == 0 {
		return nil
	}
	open := l.open
	l.open = line{}
	return l.put(open)
}

// endTurn ends the turn.
func (l *lineWriter) endTurn() error {
	if err := l.flush(); err != nil || l.turn == 0 {
		return err
	}
	l.turn = 0
	return l.put(endLine{"turn_ended", "success"})
}

// end closes the last turn if it is finished: one whose last call has no result is
// not.
func (l *lineWriter) end() error {
	if l.live {
		return l.flush()
	}
	return l.endTurn()
}

func (l *lineWriter) put(v any) error {
	raw, err := marshal(v)
	if err != nil {
		return err
	}
	_, err = l.w.Write(append(raw, '\n'))
	return err
}

// writeJSONL writes the lines of the conversation itself.
func writeJSONL(ctx context.Context, w *bufio.Writer, t *Transcript, opts *Options) error {
	all := opts.or()
	all.WithoutSubagents = true
	l := &lineWriter{w: w}
	for m, err := range t.Messages(ctx, &all) {
		if err != nil {
			return err
		}
		if m.Subagent != "" {
			continue
		}
		if err := l.write(m); err != nil {
			return err
		}
	}
	return l.end()
}
