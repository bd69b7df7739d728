package cli

import (
	"github.com/stet-dev/stet/blame"
	"github.com/stet-dev/stet/workspace"
)

type blameJSON struct {
	Schema    string            `json:"schema"`
	Path      string            `json:"path"`
	Bytes     []byte            `json:"path_bytes,omitempty"`
	At        string            `json:"at"`
	Forgotten uint64            `json:"forgotten,omitempty"`
	Lines     []blameLineJSON   `json:"lines"`
	Origins   []blameOriginJSON `json:"origins"`
}

type blameLineJSON struct {
	Line   int            `json:"line"`
	Then   int            `json:"then"`
	Origin int            `json:"origin"`
	Call   *blameCallJSON `json:"call,omitempty"`
	Text   string         `json:"text"`
}

type blameCallJSON struct {
	Number  int    `json:"number"`
	ID      string `json:"id,omitempty"`
	Tool    string `json:"tool"`
	Command string `json:"command,omitempty"`
}

type blameOriginJSON struct {
	Kind         blame.Kind   `json:"kind"`
	Why          blame.Why    `json:"why,omitempty"`
	Checkpoint   string       `json:"checkpoint,omitempty"`
	Name         string       `json:"name,omitempty"`
	Time         string       `json:"time,omitempty"`
	Path         string       `json:"path"`
	First        bool         `json:"first,omitempty"`
	Conversation string       `json:"conversation,omitempty"`
	Turn         uint64       `json:"turn,omitempty"`
	MessageID    string       `json:"message_id,omitempty"`
	Among        []string     `json:"among,omitempty"`
	Tool         string       `json:"tool,omitempty"`
	Agent        string       `json:"agent,omitempty"`
	Model        string       `json:"model,omitempty"`
	Prompt       string       `json:"prompt,omitempty"`
	Story        *blame.Story `json:"story,omitempty"`
}

func (f *shownFile) json() blameJSON {
	out := blameJSON{Schema: "stet.blame.v1", Path: f.Path, Bytes: workspace.PathBytes(f.Path), At: "@", Forgotten: f.Forgotten, Lines: []blameLineJSON{}, Origins: []blameOriginJSON{}}
	if f.At.ID != "" {
		out.At = f.At.ID
	}
	index := make([]int, len(f.Origins))
	for i, o := range f.Origins {
		words := f.words[i]
		if words == nil {
			continue // no line of it was asked for
		}
		index[i] = len(out.Origins)
		origin := blameOriginJSON{
			Kind: o.Kind, Why: o.Why, Path: o.Path, First: o.First, Conversation: o.Writer.Conversation, Turn: o.Writer.Turn,
			MessageID: o.Writer.MessageID, Among: o.Writer.Among, Tool: o.Writer.Tool,
			Agent: words.Agent, Model: words.Model, Prompt: words.Prompt, Story: f.whys[i],
		}
		if o.At.ID != "" {
			origin.Checkpoint, origin.Name, origin.Time = o.At.ID, o.At.Name(), stamp(o.At.Time)
		}
		out.Origins = append(out.Origins, origin)
	}
	for _, line := range f.lines {
		l := blameLineJSON{Line: line.Number, Then: line.Then, Origin: index[line.Origin], Text: line.Text}
		if c := line.call; c != nil {
			l.Call = &blameCallJSON{c.Number, c.ID, c.Tool, c.Command}
		}
		out.Lines = append(out.Lines, l)
	}
	return out
}
