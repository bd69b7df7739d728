package cursorimport

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
	"github.com/stet-dev/stet/foreign/cursor"
)

// mention is a message that names a JSON checkpoint.
type mention struct {
	checkpoint, message string
	side                checkpoint.Side
	turn                uint64 // 0 where it is neither before nor after a turn
	at                  time.Time
}

// mention records the checkpoints that a message names. A user's message begins a turn.
func (j *job) mention(m cursor.Message) {
	j.order = append(j.order, m.ID)
	if m.Role == cursor.RoleUser && !m.Orphan {
		j.turn++
	}
	if m.Before != "" {
		turn := j.turn
		if m.Role != cursor.RoleUser {
			turn = 0
		}
		j.mentions = append(j.mentions, mention{m.Before, m.ID, checkpoint.Before, turn, m.Created})
	}
	if m.After != "" {
		j.mentions = append(j.mentions, mention{m.After, m.ID, checkpoint.After, j.turn, m.Created})
	}
}

// missCheckpoints reports the missing checkpoints that messages name. Unreadable ones
// were reported already.
func (j *job) missCheckpoints() {
	missing := func(id string) bool {
		_, found := j.readable[id]
		return !found
	}
	for _, m := range j.mentions {
		if missing(m.checkpoint) {
			j.lose(cursor.MessagePrefix+j.conv.ID+":"+m.message, "it names the checkpoint %s, which is missing", m.checkpoint)
		}
	}
	if id := j.conv.LatestCheckpoint; id != "" && missing(id) {
		j.lose(j.conv.ID, "it names the checkpoint %s, which is missing", id)
	}
}

// sequence returns the readable checkpoints in the order of the messages that name them.
// The latest one, which no message names yet, is the last.
func (j *job) sequence() []mention {
	var out []mention
	latest := j.conv.LatestCheckpoint
	for _, m := range j.mentions {
		if j.readable[m.checkpoint] {
			out = append(out, m)
		}
	}
	if j.readable[latest] && (len(out) == 0 || out[len(out)-1].checkpoint != latest) {
		out = append(out, mention{checkpoint: latest})
	}
	return out
}

// writeRecords makes a checkpoint of the store for each mention of a JSON checkpoint,
// so that it can be shown, compared and rewound to like any other.
func (j *job) writeRecords(ctx context.Context) error {
	directory, sequence := j.directory, j.sequence()
	if directory == "" || len(sequence) == 0 {
		return nil
	}
	originals := make(map[string]jsoncheckpoint.Original, len(j.conv.Originals))
	for uri, o := range j.conv.Originals {
		if o.Known || o.NewlyCreated {
			originals[uri] = jsoncheckpoint.Original{Content: o.Content, NewlyCreated: o.NewlyCreated}
		}
	}
	roots := j.roots()
	var list []checkpoint.Imported
	var rest *jsoncheckpoint.Checkpoint // what comes after
	for _, m := range slices.Backward(sequence) {
		cp, err := j.im.src.Checkpoint(ctx, j.conv, m.checkpoint)
		if err != nil {
			if fatal(ctx, err) {
				return err
			}
			continue // it existed a moment ago; the next import finds out
		}
		one, err := j.imported(ctx, directory, cp, rest, originals)
		rest = jsoncheckpoint.Later(cp, rest)
		if err != nil {
			if fatal(ctx, err) {
				return err
			}
			j.loseCheckpoint(m.checkpoint, err)
			continue
		}
		one.Source, one.MessageID, one.Side, one.Turn = m.checkpoint, m.message, m.side, m.turn
		one.Time = firstTime(m.at, j.conv.Updated, j.conv.Created)
		one.Root = roots[m.message][m.side]
		list = append(list, one)
	}
	slices.Reverse(list)
	n, err := checkpoint.New(j.im.dst.Blobs, j.im.dst.Rows, nil).AddImported(ctx, j.conv.ID, directory, sourceName, list)
	j.changed = j.changed || n > 0
	return target(err)
}

// loseCheckpoint reports once that a checkpoint cannot be restored.
func (j *job) loseCheckpoint(id string, err error) {
	key := cursor.CheckpointPrefix + j.conv.ID + ":" + id
	if !slices.ContainsFunc(j.damage, func(s Skipped) bool { return s.Key == key }) {
		j.lose(key, "%v", err)
	}
}

// imported computes the result of going back to a checkpoint.
func (j *job) imported(ctx context.Context, directory string, cp, rest *jsoncheckpoint.Checkpoint, originals map[string]jsoncheckpoint.Original) (one checkpoint.Imported, err error) {
	var later []*jsoncheckpoint.Checkpoint
	if rest != nil {
		later = append(later, rest)
	}
	goal, err := jsoncheckpoint.Restore(cp, later, originals)
	if err != nil {
		return one, err
	}
	one.Tree, one.Absent, one.Outside, err = jsoncheckpoint.Partial(ctx, j.im.dst.Blobs, directory, goal)
	if errors.Is(err, blob.ErrNotFound) {
		return one, err // a content that the checkpoint keeps by reference
	}
	return one, target(err)
}

// roots returns, by message and side, the state of the conversation: after a
// message the one at it, before it the one at the message before.
func (j *job) roots() map[string]map[checkpoint.Side]blob.ID {
	at := make(map[string]blob.ID, len(j.plan))
	for _, p := range j.plan {
		at[p.message] = p.root
	}
	out := make(map[string]map[checkpoint.Side]blob.ID, len(j.order))
	var last blob.ID
	for _, message := range j.order {
		out[message] = map[checkpoint.Side]blob.ID{checkpoint.Before: last, checkpoint.After: at[message]}
		if root := at[message]; !root.IsZero() {
			last = root
		}
	}
	return out
}

// findDirectory finds the directory of the conversation: that of its workspace or, if
// the store does not say, the one that holds all files of its checkpoints.
func (j *job) findDirectory(ctx context.Context) error {
	if dir := j.conv.WorkspacePath(); path.IsAbs(dir) {
		j.directory = path.Clean(dir)
		return nil
	}
	for _, m := range j.sequence() {
		cp, err := j.im.src.Checkpoint(ctx, j.conv, m.checkpoint)
		if err != nil {
			if fatal(ctx, err) {
				return err
			}
			continue
		}
		for _, uri := range cp.URIs() {
			if file, ok := uri.Path(); ok {
				j.directory = commonDir(j.directory, path.Dir(path.Clean(file)))
			}
		}
	}
	return nil
}

// commonDir returns the deepest directory that holds both.
func commonDir(a, b string) string {
	if a == "" {
		return b
	}
	for a != "/" && b != a && !strings.HasPrefix(b, a+"/") {
		a = path.Dir(a)
	}
	return a
}
