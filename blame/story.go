package blame

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/stet-dev/stet/checkpoint"
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
		if s.Change, err = t.within(ctx, w.workspace, messages[call.Message].Tool.Diff); err != nil {
			return nil, err
		}
		if call.Command != "" {
			s.Change = "$ " + call.Command
		}
		if s.Before == s.Reply { // nothing came after it
			s.Before = ""
		}
	}
	return s, nil
}

// within names the files of a diff as the workspace does. Most agents give their edit tools
// absolute paths.
func (t *Teller) within(ctx context.Context, workspace, diff string) (string, error) {
	dir, err := t.r.checkpoints.WorkspacePath(ctx, workspace)
	if errors.Is(err, checkpoint.ErrNotFound) || diff == "" {
		return diff, nil
	}
	if err != nil {
		return "", err
	}
	dir = strings.Trim(filepath.ToSlash(dir), "/") + "/"
	var out strings.Builder
	for line := range strings.Lines(diff) {
		for _, mark := range []string{"--- a/", "+++ b/"} {
			if path, ok := strings.CutPrefix(line, mark); ok {
				line = mark + strings.TrimPrefix(filepath.ToSlash(path), dir)
			}
		}
		out.WriteString(line)
	}
	return out.String(), nil
}
