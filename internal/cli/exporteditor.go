package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/foreign/cursor/cursorexport"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
)

// editorFormat is the format, and the extension, of a database of the editor.
const editorFormat = "vscdb"

// editor reports whether a database of the editor is to be written.
func (f *exportFlags) editor() bool {
	return f.format == editorFormat || f.format == "" && strings.EqualFold(filepath.Ext(f.output), "."+editorFormat)
}

// check refuses flags that have no meaning for a database.
func (f *exportFlags) check(names []string) error {
	switch {
	case f.output == "":
		return errors.New("a database needs -o FILE.vscdb")
	case f.at != "" || f.turns != "" || f.light || f.lenient:
		return errors.New("--at, --turns, --light and --lenient do not apply to a database")
	case f.all && len(names) > 0:
		return errors.New("name conversations or use --all, not both")
	case !f.all && len(names) == 0:
		return errors.New("name a conversation, or use --all")
	}
	return nil
}

type exportedJSON struct {
	Schema        string        `json:"schema"`
	Output        string        `json:"output"`
	Conversations int           `json:"conversations"`
	Messages      int           `json:"messages"`
	Checkpoints   int           `json:"checkpoints"`
	Rows          int           `json:"rows"`
	Blobs         int64         `json:"blobs"`
	Bytes         int64         `json:"bytes"`
	Empty         []string      `json:"empty"`
	LeftOut       []string      `json:"left_out"`
	Damaged       []damagedJSON `json:"damaged"`
}

type damagedJSON struct {
	Conversation string `json:"conversation"`
	Reason       string `json:"reason"`
}

// exportEditor writes conversations into a new database of the editor.
func (a *app) exportEditor(ctx context.Context, names []string, flags exportFlags) error {
	if err := flags.check(names); err != nil {
		return usage(err)
	}
	return a.withStore(ctx, false, func(db *stet.DB) error {
		ids, err := exportIDs(ctx, db, names)
		if err != nil {
			return err
		}
		value := exportedJSON{Schema: "stet.exported.v1", Output: flags.output, Empty: []string{}, LeftOut: []string{}, Damaged: []damagedJSON{}}
		opts := &cursorexport.Options{Base: flags.base}
		if flags.all {
			opts.Damaged = func(id string, err error) {
				value.Damaged = append(value.Damaged, damagedJSON{id, err.Error()})
			}
		}
		result, err := cursorexport.Export(ctx, cursorimport.Target{Blobs: db.Blobs(), Rows: db.Rows()}, flags.output, ids, opts)
		a.warnDamaged(value.Damaged)
		if err != nil {
			return err
		}
		value.Conversations, value.Messages, value.Checkpoints = result.Conversations, result.Messages, result.Checkpoints
		value.Rows, value.Blobs, value.Bytes = result.Rows, result.Blobs, result.Bytes
		value.Empty, value.LeftOut = append(value.Empty, result.Empty...), append(value.LeftOut, result.LeftOut...)
		if err := a.print(value, a.exportedText(value)); err != nil {
			return err
		}
		if len(value.Damaged) > 0 {
			return silentExit{ExitDamage}
		}
		return nil
	})
}

// exportIDs finds the conversations that names name; no names are all.
func exportIDs(ctx context.Context, db *stet.DB, names []string) (ids []string, err error) {
	if len(names) == 0 {
		return db.Conversations().IDs(ctx, "", 0)
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		id, err := conversationID(ctx, db, name)
		if err != nil {
			return nil, err
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (a *app) warnDamaged(damaged []damagedJSON) {
	for _, d := range damaged {
		a.warn("left out: %s: %s", d.Conversation, d.Reason)
	}
}

func (a *app) exportedText(v exportedJSON) string {
	var text strings.Builder
	fmt.Fprintf(&text, "wrote %s: %s with %s and %s, %s (%s)\n", printable(v.Output), plural(int64(v.Conversations), "conversation"),
		plural(int64(v.Messages), "message"), plural(int64(v.Checkpoints), "checkpoint"), plural(v.Blobs, "blob"), byteSize(v.Bytes))
	for _, id := range v.Empty {
		fmt.Fprintf(&text, "skipped  %s: it is empty\n", printable(id))
	}
	for _, path := range v.LeftOut {
		fmt.Fprintf(&text, "left out  %s: a checkpoint of the editor cannot hold it\n", printable(path))
	}
	return text.String()
}
