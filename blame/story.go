package blame

import (
	"context"

	"github.com/stet-dev/stet/transcript"
)

// Story is what was said around a change, for people who ask why.
type Story struct {
	// Before is the last text of the agent before the call that made the change, Change
	// is the diff or the command of the call, and Reply is the last text of the turn.
	// Each is "" if unknown.
	Before string `json:"before,omitempty"`
	Change string `json:"change,omitempty"`
	Reply  string `json:"reply,omitempty"`
}

// Story returns what was said around a call in the turn of an origin. Without a call
// it has only the reply.
func (t *Teller) Story(ctx context.Context, w *Words, call *Call) (*Story, error) {
	messages, err := t.Messages(ctx, w)
	if err != nil {
		return nil, err
	}
	s := &Story{}
	for i, m := range messages {
		if m.Role != transcript.Assistant || m.Kind != transcript.Text || m.Subagent != "" {
			continue
		}
		if call != nil && i < call.Message {
			s.Before = m.Text
		}
		s.Reply = m.Text
	}
	if call != nil {
		s.Change = messages[call.Message].Tool.Diff
		if call.Command != "" {
			s.Change = "$ " + call.Command
		}
		if s.Before == s.Reply { // nothing came after it
			s.Before = ""
		}
	}
	return s, nil
}
