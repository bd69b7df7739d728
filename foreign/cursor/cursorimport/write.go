package cursorimport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// maxName is the longest id or URI in a key or a path.
const maxName = 256

// keep stores a row and records the contents that it names.
func (j *job) keep(ctx context.Context, key string, value []byte) error {
	for _, name := range contentName().FindAll(value, -1) {
		j.contents[string(name)] = true
	}
	return j.source.row(ctx, key, value)
}

// contentName is the key of a row with the text of a file.
var contentName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(regexp.QuoteMeta(cursor.ContentPrefix) + `[0-9a-f]{64}`)
})

// readOriginals keeps V0 of each file.
func (j *job) readOriginals(ctx context.Context) error {
	for _, uri := range slices.Sorted(maps.Keys(j.conv.Originals)) {
		j.extras++
		o := j.conv.Originals[uri]
		key := cursor.OriginalPrefix + j.conv.ID + ":" + uri
		switch {
		case len(uri) > 4000:
			j.lose(j.conv.ID, "the URI of a file has %d bytes", len(uri))
		case !o.Known && !o.NewlyCreated:
			j.lose(key, "%v: original content of the file", cursor.ErrNotFound)
		default:
			if err := j.source.original(ctx, uri, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// readRest stores the other rows about the conversation, and its own row last,
// because that one changes most.
func (j *job) readRest(ctx context.Context) error {
	if j.im.src.Kind() != cursor.KindEditor {
		return nil
	}
	for _, prefix := range []string{cursor.CodeDiffPrefix, cursor.RequestPrefix} {
		for key, err := range j.im.src.Keys(ctx, prefix+j.conv.ID+":") {
			if err != nil {
				if fatal(ctx, err) {
					return err
				}
				j.lose(prefix+j.conv.ID, "rows cannot be read completely: %v", err)
				break
			}
			if err := j.readRow(ctx, key, j.keep); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.contents)) {
		if err := j.readRow(ctx, name, j.source.row); err != nil {
			return err
		}
	}
	if err := j.source.endSegment(ctx); err != nil || j.conv.Raw == nil { // only a pointer names it
		return err
	}
	return j.source.row(ctx, cursor.ConversationPrefix+j.conv.ID, j.conv.Raw)
}

// readRow passes the value of a row to fn, if there is one. An unreadable value is
// reported as lost and does not end the import.
func (j *job) readRow(ctx context.Context, key string, fn func(context.Context, string, []byte) error) error {
	v, err := j.im.src.Value(ctx, key)
	switch {
	case errors.Is(err, cursor.ErrNotFound):
		return nil
	case err != nil && cursor.OfRow(err) && !fatal(ctx, err):
		j.lose(key, "%v", err)
		return nil
	case err != nil:
		return err
	}
	return fn(ctx, key, v.Data)
}

// readCheckpoints reads the JSON checkpoints. An unreadable one stays a row of the
// source.
func (j *job) readCheckpoints(ctx context.Context) error {
	note := func(id string, raw []byte) error {
		j.extras++
		// Lost content is reported for each checkpoint that cannot be restored.
		if err := j.im.copy(ctx, j.im.blobs, contentsOf(id, raw)); err != nil && fatal(ctx, err) {
			return err
		}
		j.readable[id] = true
		return nil
	}
	err := j.checkpoints(ctx, note, func(id string, raw []byte, problem error) error {
		j.readable[id] = false
		key := cursor.CheckpointPrefix + j.conv.ID + ":" + id
		j.lose(key, "%v", problem)
		if raw == nil {
			return nil
		}
		return j.source.row(ctx, key, raw)
	})
	if err != nil {
		return err
	}
	j.missCheckpoints()
	return j.findDirectory(ctx)
}

// checkpoints calls good for each JSON checkpoint that can be stored, and bad for
// the others; either may be nil.
func (j *job) checkpoints(ctx context.Context, good func(id string, raw []byte) error, bad func(id string, raw []byte, err error) error) error {
	for id, err := range j.im.src.Checkpoints(ctx, j.conv) {
		var raw []byte
		if err == nil {
			raw, err = j.im.src.CheckpointRow(ctx, j.conv, id)
		}
		if err == nil {
			err = checkCheckpoint(id, raw)
		}
		switch {
		case err == nil && good != nil:
			err = good(id, raw)
		case err != nil && fatal(ctx, err):
		case err != nil && bad != nil:
			err = bad(id, raw, err)
		default:
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkCheckpoint(id string, raw []byte) error {
	switch {
	case id == "" || len(id) > maxName:
		return fmt.Errorf("%w: an id of %d bytes", cursor.ErrMalformed, len(id))
	case len(raw) > kv.MaxValue:
		return fmt.Errorf("%w: a checkpoint of %d bytes", blob.ErrTooLarge, len(raw))
	}
	_, err := cursor.DecodeCheckpoint(id, raw)
	return err
}

// contentsOf returns the blobs with the contents that a checkpoint keeps by reference.
func contentsOf(id string, raw []byte) []blob.ID {
	cp, err := cursor.DecodeCheckpoint(id, raw)
	if err != nil {
		return nil
	}
	return cp.Blobs()
}

func (j *job) countCheckpoints(ctx context.Context) error {
	return j.checkpoints(ctx, func(id string, raw []byte) error {
		fresh, err := j.freshCheckpoint(ctx, id, raw)
		if fresh {
			j.im.result.Checkpoints++
		}
		return err
	}, nil)
}

func (j *job) freshCheckpoint(ctx context.Context, id string, raw []byte) (bool, error) {
	row, err := j.im.dst.Rows.Get(ctx, keyspace.JSONCheckpoint(j.conv.ID, id))
	if errors.Is(err, kv.ErrNotFound) {
		return true, nil
	}
	return err == nil && !bytes.Equal(row.Value, raw), target(err)
}

// writeCheckpoints stores the checkpoints byte for byte, some at a time.
func (j *job) writeCheckpoints(ctx context.Context) error {
	batch, size := &kv.Batch{}, 0
	commit := func() error {
		if len(batch.Set) == 0 {
			return nil
		}
		err := j.im.dst.Rows.Commit(ctx, batch)
		if err == nil {
			j.changed = true
			j.im.result.Checkpoints += len(batch.Set)
		}
		batch, size = &kv.Batch{}, 0
		return target(err)
	}
	err := j.checkpoints(ctx, func(id string, raw []byte) error {
		fresh, err := j.freshCheckpoint(ctx, id, raw)
		if err != nil || !fresh {
			return err
		}
		batch.Set = append(batch.Set, kv.Set{Key: keyspace.JSONCheckpoint(j.conv.ID, id), Value: raw})
		refs, err := j.present(ctx, contentsOf(id, raw))
		if err != nil {
			return err
		}
		batch.Refs = append(batch.Refs, refs...)
		if size += len(raw); size < putBatch && len(batch.Set) < hasBatch {
			return nil
		}
		return commit()
	}, nil)
	if err != nil {
		return err
	}
	return commit()
}

// present returns the blobs that the target has. A row may also name blobs that the
// source had lost.
func (j *job) present(ctx context.Context, ids []blob.ID) ([]blob.ID, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	have, err := j.im.dst.Blobs.Has(ctx, ids...)
	if err != nil {
		return nil, target(err)
	}
	var out []blob.ID
	for i, id := range ids {
		if have[i] {
			out = append(out, id)
		}
	}
	return out, nil
}

// write writes the rows: the record, the source, the JSON checkpoints, a save for each
// restore point, the checkpoints made from JSON ones, and finally the digest.
func (j *job) write(ctx context.Context) error {
	c, err := j.open(ctx)
	if err != nil {
		return err
	}
	news, err := j.im.anchor(ctx, j.conv.ID, sourceMessage, j.sourceID, j.source.parts)
	if err != nil {
		return err
	}
	j.changed = j.changed || news
	if err := j.writeCheckpoints(ctx); err != nil {
		return err
	}
	for _, p := range j.plan {
		root, err := j.im.store.MessageHead(ctx, j.conv.ID, p.message)
		if err == nil && root == p.root {
			continue
		}
		if err := j.save(ctx, c, p); errors.Is(err, conversation.ErrInvalid) {
			j.lose(cursor.MessageHeadPrefix+j.conv.ID+":"+p.message, "%v", err)
			c.Discard()
		} else if err != nil {
			return err
		}
	}
	if !j.final.IsZero() && c.Head().Root != j.final {
		if err := j.save(ctx, c, restorePoint{"", j.final, j.conv.Updated}); err != nil {
			return err
		}
	}
	if err := j.writeRecords(ctx); err != nil {
		return err
	}
	if len(j.damage) > 0 || j.digest == "" {
		return nil
	}
	return target(j.im.store.SetLabel(ctx, j.conv.ID, labelDigest, j.digest))
}

// open opens the conversation, or creates it.
func (j *job) open(ctx context.Context) (*conversation.Conversation, error) {
	if j.known != nil {
		c, err := j.im.store.Open(ctx, j.conv.ID)
		return c, target(err)
	}
	j.im.now = firstTime(j.conv.Created, j.conv.Updated)
	j.changed = true
	c, err := j.im.store.Create(ctx, conversation.Info{
		ID: j.conv.ID, Title: j.conv.Title, Workspace: cmp.Or(j.directory, j.conv.WorkspacePath()), Agent: sourceName, Labels: j.labels(),
	})
	if err == nil && j.im.opts.Again { // if this fails, the next import continues all the same
		err = j.im.dst.Rows.Commit(ctx, &kv.Batch{Delete: []string{keyspace.Cutoff(j.conv.ID)}})
	}
	return c, target(err)
}

func (j *job) labels() map[string]string {
	c := j.conv
	labels := map[string]string{labelSource: sourceName, labelPath: j.im.path}
	for name, value := range map[string]string{labelParent: cmp.Or(c.Parent, j.im.parents[c.ID]), labelMode: c.Mode, labelKind: j.kind} {
		if value != "" {
			labels[name] = value
		}
	}
	if c.Subagent {
		labels[labelSubagent] = "true"
	}
	if c.Archived {
		labels[labelArchived] = "true"
	}
	return labels
}

// save saves a root at its time.
func (j *job) save(ctx context.Context, c *conversation.Conversation, p restorePoint) error {
	j.im.now = firstTime(p.at, j.conv.Updated, j.conv.Created)
	err := c.SetRoot(ctx, p.root)
	if err == nil {
		_, err = c.Save(ctx, &conversation.SaveOptions{MessageID: p.message, Author: sourceName, Kind: conversation.KindImport})
	}
	if errors.Is(err, conversation.ErrInvalid) || errors.Is(err, conversation.ErrStale) {
		return err // about this conversation alone
	}
	j.changed = j.changed || err == nil
	return target(err)
}

// firstTime returns the first non-zero time, or now.
func firstTime(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Now()
}
