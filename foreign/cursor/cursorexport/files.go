package cursorexport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"unicode/utf8"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/workspace"
)

// maxText is the longest file that checkpoints describe by lines. Longer ones are blobs.
const maxText = 1 << 20

// files are the files that a conversation changed, as the editor describes them: their
// first contents, and checkpoints before and after turns.
type files struct {
	originals map[string]jsoncheckpoint.Original // by URI
	paths     map[string]string                  // by URI, below the directory
	left      map[string]bool                    // paths that cannot be described
	sides     map[turnSide]string                // checkpoints
	latest    string
}

type turnSide struct {
	turn int
	side checkpoint.Side
}

func (f *files) before(turn int) string { return f.at(turn, checkpoint.Before) }
func (f *files) after(turn int) string  { return f.at(turn, checkpoint.After) }

func (f *files) at(turn int, side checkpoint.Side) string {
	if f == nil {
		return ""
	}
	return f.sides[turnSide{turn, side}]
}

// originalStates returns the first contents in the form of a conversation's row.
func (f *files) originalStates() map[string]any {
	out := map[string]any{}
	if f == nil {
		return out
	}
	for uri, o := range f.originals {
		out[uri] = map[string]any{"content": o.Content, "isNewlyCreated": o.NewlyCreated, "newlyCreatedFolders": []string{}}
	}
	return out
}

// files makes JSON checkpoints of the checkpoints of a conversation. They cover only
// the files that the conversation changed: going back in the editor must not revert
// the user's changes. It returns nil if there are none.
func (e *exporter) files(ctx context.Context, info conversation.Info) (*files, error) {
	var records []*checkpoint.Record
	for rec, err := range e.saved.ListConversation(ctx, info.ID) {
		if err != nil {
			return nil, err
		}
		if rec.Kind != checkpoint.Import && !rec.Tree.IsZero() {
			records = append(records, rec)
		}
	}
	if len(records) == 0 || info.Workspace == "" {
		return nil, nil
	}
	slices.Reverse(records) // oldest first
	f := &files{
		originals: map[string]jsoncheckpoint.Original{}, paths: map[string]string{}, left: map[string]bool{}, sides: map[turnSide]string{},
	}
	for _, rec := range records {
		if err := e.firstContents(ctx, f, info, rec); err != nil {
			return nil, treeLost(rec, err)
		}
	}
	for _, rec := range records {
		if err := e.fileCheckpoint(ctx, f, info, rec); err != nil {
			return nil, treeLost(rec, err)
		}
	}
	e.result.LeftOut = append(e.result.LeftOut, slices.Sorted(maps.Keys(f.left))...)
	return f, nil
}

// firstContents adds the files that a checkpoint saw the conversation change, with their
// contents before.
func (e *exporter) firstContents(ctx context.Context, f *files, info conversation.Info, rec *checkpoint.Record) error {
	writer := rec.Writer()
	if rec.Parent == "" || writer.Class != checkpoint.ByConversation || writer.Conversation != info.ID {
		return nil
	}
	parent, err := e.saved.Get(ctx, rec.Parent)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil // no longer kept
	}
	if err != nil {
		return err
	}
	changes, err := workspace.Diff(ctx, e.src.Blobs, parent.Tree, rec.Tree)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if isDir(c.Before) && c.After == nil || isDir(c.After) && c.Before == nil || isDir(c.Before) && isDir(c.After) {
			continue // a folder comes and goes with its files
		}
		uri := jsoncheckpoint.FileURI(path.Join(info.Workspace, c.Path)).String()
		if _, known := f.originals[uri]; known {
			continue
		}
		if !describable(c.Before) || !describable(c.After) {
			f.left[c.Path] = true
			continue
		}
		original, err := e.original(ctx, c.Before)
		if err != nil {
			return err
		}
		f.originals[uri], f.paths[uri] = original, c.Path
	}
	return nil
}

func isDir(e *workspace.Entry) bool { return e != nil && e.Kind == workspace.Dir }

// describable reports whether checkpoints can say that an entry is there.
func describable(e *workspace.Entry) bool { return e == nil || e.Kind == workspace.File }

// original returns the first content of a file. One that is not text, or too long,
// counts as empty: checkpoints then have the whole content.
func (e *exporter) original(ctx context.Context, entry *workspace.Entry) (jsoncheckpoint.Original, error) {
	if entry == nil {
		return jsoncheckpoint.Original{NewlyCreated: true}, nil
	}
	if entry.Size > maxText {
		return jsoncheckpoint.Original{}, nil
	}
	data, err := workspace.ReadFile(ctx, e.src.Blobs, *entry)
	if err != nil || !utf8.Valid(data) {
		return jsoncheckpoint.Original{}, err
	}
	return jsoncheckpoint.Original{Content: string(data)}, nil
}

// fileCheckpoint writes one checkpoint.
func (e *exporter) fileCheckpoint(ctx context.Context, f *files, info conversation.Info, rec *checkpoint.Record) error {
	key := cursor.CheckpointPrefix + info.ID + ":" + rec.ID
	cp, unsaid, err := jsoncheckpoint.Create(jsoncheckpoint.Scene{
		Originals: f.originals, MaxText: maxText,
		Read: func(uri string) (string, bool, error) { return e.readFile(ctx, f, rec.Tree, uri) },
		Keep: func(content string) (blob.ID, error) {
			b := blob.New([]byte(content))
			if _, done := e.written[b.ID]; done {
				return b.ID, nil
			}
			e.written[b.ID] = struct{}{}
			e.result.Blobs++
			e.result.Bytes += int64(len(b.Data))
			return b.ID, e.to.Blobs().Put(ctx, b)
		},
	})
	if err != nil {
		return err
	}
	for _, uri := range unsaid {
		f.left[f.paths[uri]] = true
	}
	f.place(rec)
	f.latest = rec.ID
	e.result.Checkpoints++
	return e.row(ctx, key, encode(cp))
}

// place records where in the conversation a checkpoint was taken: the first one before a
// turn, and the last one after it.
func (f *files) place(rec *checkpoint.Record) {
	at := turnSide{int(rec.Turn), rec.Side}
	if _, taken := f.sides[at]; rec.Turn == 0 || taken && rec.Side == checkpoint.Before {
		return
	}
	f.sides[at] = rec.ID
}

// readFile returns the content of a file in a tree. Something else in its place cannot be
// described and counts as absent.
func (e *exporter) readFile(ctx context.Context, f *files, tree blob.ID, uri string) (content string, exists bool, err error) {
	entry, err := workspace.Lookup(ctx, e.src.Blobs, tree, f.paths[uri])
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if entry.Kind != workspace.File {
		f.left[f.paths[uri]] = true
		return "", false, nil
	}
	data, err := workspace.ReadFile(ctx, e.src.Blobs, entry)
	return string(data), err == nil, err
}

// treeLost returns a lost or damaged file of a checkpoint as a loss of data.
func treeLost(rec *checkpoint.Record, err error) error {
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		return &cursor.DataLossError{Source: "checkpoint " + rec.Name(), Err: err}
	}
	return fmt.Errorf("read checkpoint %s: %w", rec.Name(), err)
}
