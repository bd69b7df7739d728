package copilot

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
)

// head is read from the beginning of a session.
type head struct {
	id, cwd, title string
	started        time.Time
}

// maxHead is how many lines are searched for the start of a session.
const maxHead = 20

// readHead reads the description of a session. The name of its directory is its id
// unless the record says otherwise.
func readHead(ctx context.Context, path string) head {
	h := head{id: filepath.Base(filepath.Dir(path))}
	if yaml, err := os.ReadFile(filepath.Join(filepath.Dir(path), workspaceFile)); err == nil {
		h.cwd = value(yaml, "cwd")
		h.started, _ = time.Parse(time.RFC3339, value(yaml, "created_at")) // zero if it is not a time
		if value(yaml, "user_named") == "true" {
			h.title = value(yaml, "name")
		}
	}
	lines := 0
	for raw, err := range jsonl.Lines(ctx, path, 0) {
		var l line
		if err == nil && json.Unmarshal(raw.Data, &l) == nil && l.Type == "session.start" {
			h.start(l.Data)
			break
		}
		if lines++; lines >= maxHead {
			break
		}
	}
	return h
}

func (h *head) start(data json.RawMessage) {
	var d struct {
		ID      string    `json:"sessionId"`
		Start   time.Time `json:"startTime"`
		Context struct {
			Cwd string `json:"cwd"`
		} `json:"context"`
	}
	if json.Unmarshal(data, &d) != nil || d.ID == "" {
		return
	}
	h.id = d.ID
	if d.Context.Cwd != "" {
		h.cwd = d.Context.Cwd
	}
	if !d.Start.IsZero() {
		h.started = d.Start
	}
}

// value returns a value of one line at the top of a YAML file, "" if it has another form.
func value(yaml []byte, key string) string {
	for _, l := range bytes.Split(yaml, []byte("\n")) {
		rest, ok := strings.CutPrefix(string(l), key+": ")
		if !ok {
			continue
		}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "|") || strings.HasPrefix(rest, ">") {
			return ""
		}
		return strings.Trim(rest, `"'`)
	}
	return ""
}

// subagents finds the subagents of a session in its events.
func subagents(ctx context.Context, s foreign.Session) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		owner := map[string]string{} // of calls of the task tool: the subagent that made it
		have := map[string]bool{}
		for raw, err := range jsonl.Lines(ctx, s.Path, 0) {
			if err != nil {
				if !foreign.Unreadable(err) {
					yield(foreign.Session{}, err)
					return
				}
				continue // reported when the turns are read
			}
			started := bytes.Contains(raw.Data, []byte(`"subagent.started"`))
			if !started && !bytes.Contains(raw.Data, []byte(`"tool.execution_start"`)) {
				continue
			}
			var l line
			var call struct {
				ID string `json:"toolCallId"`
			}
			if json.Unmarshal(raw.Data, &l) != nil || json.Unmarshal(l.Data, &call) != nil {
				continue
			}
			switch {
			case l.Type == "tool.execution_start" && l.Agent != "":
				owner[call.ID] = l.Agent
			case l.Type == "subagent.started" && l.Agent != "" && !have[l.Agent]:
				have[l.Agent] = true
				sub := foreign.Session{
					Agent: Name, ID: l.Agent, Path: s.Path, Workspace: s.Workspace, Started: l.Timestamp, Updated: s.Updated, Size: s.Size,
					Parent: s.ID, ParentCall: call.ID,
				}
				if by := owner[call.ID]; by != "" {
					sub.Parent = by
				}
				if !yield(sub, nil) {
					return
				}
			}
		}
	}
}
