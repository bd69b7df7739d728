package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blame"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/workspace"
)

type linesJSON struct {
	Schema       string         `json:"schema"`
	Checkpoint   string         `json:"checkpoint"`
	Name         string         `json:"name"`
	Conversation string         `json:"conversation,omitempty"`
	Turn         uint64         `json:"turn,omitempty"`
	Written      int            `json:"written"`
	Left         int            `json:"left"`
	Files        []leftFileJSON `json:"files"`
}

type leftFileJSON struct {
	Path    string        `json:"path"`
	Bytes   []byte        `json:"path_bytes,omitempty"`
	Now     string        `json:"now,omitempty"`
	Written int           `json:"written"`
	Left    int           `json:"left"`
	Changed []changedJSON `json:"changed,omitempty"`
}

type changedJSON struct {
	Lines        int        `json:"lines"`
	Kind         blame.Kind `json:"kind"`
	Why          blame.Why  `json:"why,omitempty"`
	Rewound      bool       `json:"rewound,omitempty"`
	Checkpoint   string     `json:"checkpoint,omitempty"`
	Name         string     `json:"name,omitempty"`
	Conversation string     `json:"conversation,omitempty"`
	Turn         uint64     `json:"turn,omitempty"`
}

// showLines shows what is left of the lines that a turn wrote.
func (a *app) showLines(ctx context.Context, p *place, ref string) error {
	conv, err := a.known(ctx, p)
	if err != nil {
		return err
	}
	return p.withLook(ctx, func(l look) error {
		rec, err := l.space.Resolve(ctx, ref, conv)
		if err != nil {
			return err
		}
		if rec == nil {
			return usage(fmt.Errorf("%q is the working tree; --lines needs a checkpoint or a turn", ref))
		}
		now, err := l.record(ctx, "@", conv)
		if err != nil {
			return err
		}
		left, err := blame.New(l.blobs, p.service.Looking(l.blobs), p.db.Conversations()).Left(ctx, rec, now)
		if err != nil {
			return err
		}
		value := newLinesJSON(rec, left)
		return a.print(value, a.linesText(value))
	})
}

func newLinesJSON(rec *checkpoint.Record, left *blame.Left) linesJSON {
	by := left.Origin.Writer
	out := linesJSON{Schema: "stet.show.lines.v1", Checkpoint: rec.ID, Name: rec.Name(), Conversation: by.Conversation, Turn: by.Turn, Files: []leftFileJSON{}}
	for _, f := range left.Files {
		file := leftFileJSON{Path: f.Path, Bytes: workspace.PathBytes(f.Path), Now: f.Now, Written: f.Written, Left: f.Left}
		for _, c := range f.Changed {
			changed := changedJSON{Lines: c.Lines, Kind: c.Origin.Kind, Why: c.Origin.Why, Rewound: c.Rewound, Conversation: c.Origin.Writer.Conversation, Turn: c.Origin.Writer.Turn}
			if c.Origin.At.ID != "" {
				changed.Checkpoint, changed.Name = c.Origin.At.ID, c.Origin.At.Name()
			}
			file.Changed = append(file.Changed, changed)
		}
		out.Written += f.Written
		out.Left += f.Left
		out.Files = append(out.Files, file)
	}
	return out
}

func (a *app) linesText(v linesJSON) string {
	p := a.paint()
	what := v.Name
	if v.Turn > 0 {
		what = fmt.Sprintf("turn %d of %s", v.Turn, a.short(v.Conversation))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s wrote %s, %s left\n", p.bold(what), plural(int64(v.Written), "line"), p.bold(fmt.Sprint(v.Left)))
	width := 0
	for _, f := range v.Files {
		width = max(width, columns(printable(f.Path)))
	}
	for _, f := range v.Files {
		fmt.Fprintf(&text, "  %s  %s written  %s left", pad(printable(f.Path), width), padLeft(fmt.Sprint(f.Written), 5), padLeft(fmt.Sprint(f.Left), 5))
		switch f.Now {
		case f.Path:
		case "":
			text.WriteString("  removed since")
		default:
			text.WriteString("  now " + printable(f.Now))
		}
		for _, c := range f.Changed {
			fmt.Fprintf(&text, "  %s", p.dim(fmt.Sprintf("%d %s", c.Lines, changedBy(c))))
		}
		text.WriteString("\n")
	}
	return text.String()
}

// changedBy says who changed lines.
func changedBy(c changedJSON) string {
	at := c.Name
	if at == "" {
		at = "now"
	}
	switch {
	case c.Rewound:
		return "taken back by a rewind (" + at + ")"
	case c.Kind == blame.You:
		return "changed by you (" + at + ")"
	case c.Kind == blame.Agent && c.Turn > 0:
		return fmt.Sprintf("changed in turn %d (%s)", c.Turn, at)
	case c.Kind == blame.Agent:
		return "changed by " + printable(c.Conversation) + " (" + at + ")"
	case c.Kind == blame.Several:
		return "changed by one of several agents (" + at + ")"
	}
	return "changed by an unknown author (" + at + ")"
}
