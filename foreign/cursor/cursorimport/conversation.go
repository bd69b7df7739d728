package cursorimport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/kv"
)

// job is the import of one conversation: first everything is read and its blobs are
// copied, then rows are written.
type job struct {
	im     *importer
	conv   *cursor.Conversation
	known  *conversation.Info // nil if the target does not have it
	kind   string             // a label; "" for conversations with messages
	digest string             // of the source; "" if it cannot be read completely
	carry  *carrier
	source *sourceWriter

	messages int
	extras   int             // runs, checkpoints and original files
	seen     map[string]bool // messages
	contents map[string]bool // rows named by others
	plan     []restorePoint
	final    blob.ID // the final root, or zero
	sourceID blob.ID
	mentions []mention
	// directory is the directory of the checkpoints, or "".
	directory string
	order     []string        // messages
	turn      uint64          // of the last message
	readable  map[string]bool // JSON checkpoints: whether they can be stored
	damage    []Skipped
	changed   bool
}

// restorePoint is a message and its root.
type restorePoint struct {
	message string
	root    blob.ID
	at      time.Time
}

// conversation imports one conversation.
func (im *importer) conversation(ctx context.Context, h cursor.Header) error {
	if h.Missing {
		im.skip(h.ID, false, "a list names it, but this store has no row for it")
		return nil
	}
	known, err := im.known(ctx, h.ID)
	if err != nil {
		return err
	}
	if reason, err := im.cutOff(ctx, h.ID, known != nil); reason != "" || err != nil {
		if err == nil {
			im.skip(h.ID, false, "%s", reason)
		}
		return err
	}
	conv, err := im.src.Conversation(ctx, h.ID)
	if err != nil {
		return err
	}
	for _, child := range conv.Children {
		im.parents[child] = conv.ID
	}
	digest, err := im.digest(ctx, conv)
	if err != nil {
		return err
	}
	if reason, err := im.reasonToSkip(ctx, known, digest); reason != "" || err != nil {
		if err == nil {
			im.skip(h.ID, false, "%s", reason)
		}
		return err
	}
	run := func() (*job, error) {
		j := &job{im: im, conv: conv, known: known, digest: digest, carry: im.carrier(), source: newSourceWriter(im),
			seen: map[string]bool{}, contents: map[string]bool{}, readable: map[string]bool{}}
		return j, j.run(ctx)
	}
	j, err := run()
	if missing := (*kv.MissingBlobsError)(nil); errors.As(err, &missing) {
		// A collection ran in between. Blobs put now are safe from it.
		if known, err = im.known(ctx, h.ID); err != nil {
			return err
		}
		j, err = run()
	}
	im.result.Skipped = append(im.result.Skipped, j.damage...)
	return err
}

// Reasons to skip a conversation.
const (
	alreadyImported = "already imported"
	continuedHere   = "it was continued here since it was imported"
)

// cutOff returns why a conversation is left alone because it was removed here, or because
// content of it was purged, which the source may still have; "" otherwise. One that is
// there after it was removed was brought back.
func (im *importer) cutOff(ctx context.Context, id string, exists bool) (string, error) {
	cut, _, err := im.store.Cutoff(ctx, id)
	switch {
	case err != nil:
		return "", target(err)
	case cut.Source != "" && cut.Source != sourceName:
		return "", nil
	case cut.Purged && (exists || !im.opts.Again || !im.opts.Purged):
		return "content of it was purged here, which the source may still have", nil
	case cut.Removed && !exists && !im.opts.Again:
		return "it was removed here before; --again imports it", nil
	}
	return "", nil
}

// known returns the conversation in the target, or nil.
func (im *importer) known(ctx context.Context, id string) (*conversation.Info, error) {
	info, err := im.store.Get(ctx, id)
	switch {
	case errors.Is(err, conversation.ErrNotFound):
		return nil, nil
	case errors.Is(err, conversation.ErrInvalid):
		return nil, err // the id
	case err != nil:
		return nil, target(err)
	}
	return &info, nil
}

// reasonToSkip returns why a conversation can be skipped, or "".
func (im *importer) reasonToSkip(ctx context.Context, known *conversation.Info, digest string) (string, error) {
	switch {
	case known == nil:
		return "", nil
	case known.Labels[labelSource] != sourceName:
		return "the store already has a conversation with this id that was not imported", nil
	case digest != "" && known.Labels[labelDigest] == digest:
		return alreadyImported, nil
	case known.Save == 0:
		return "", nil
	}
	last, err := im.store.SaveAt(ctx, known.ID, known.Save)
	if err != nil {
		return "", target(err)
	}
	if last.Kind != conversation.KindImport {
		return continuedHere, nil
	}
	return "", nil
}

func (j *job) lose(key string, format string, args ...any) {
	j.damage = append(j.damage, Skipped{Key: key, Reason: fmt.Sprintf(format, args...), Damage: true})
}

func (j *job) run(ctx context.Context) error {
	before := j.im.result.Blobs
	for _, step := range []func(context.Context) error{
		j.readMessages, j.readHeads, j.readRuns, j.readOriginals, j.readCheckpoints, j.readRest, j.findState,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if j.final.IsZero() && len(j.plan) == 0 && j.messages == 0 && j.extras == 0 {
		if len(j.damage) > 0 {
			return nil // already reported
		}
		j.im.skip(j.conv.ID, false, "it is empty")
		return nil
	}
	var err error
	if j.sourceID, err = j.source.end(ctx); err != nil {
		return err
	}
	j.changed = j.im.result.Blobs > before
	if j.im.opts.DryRun {
		j.changed = true
		j.count()
		return j.countCheckpoints(ctx)
	}
	if err := j.write(ctx); err != nil {
		return err
	}
	j.count()
	return nil
}

func (j *job) count() {
	if j.known != nil && !j.changed {
		j.im.skip(j.conv.ID, false, alreadyImported)
		return
	}
	j.im.result.Conversations++
	j.im.result.Messages += j.messages
}

// readMessages reads the messages, keeps their rows and imports their states.
func (j *job) readMessages(ctx context.Context) error {
	for m, err := range j.im.src.Messages(ctx, j.conv) {
		if err != nil {
			if fatal(ctx, err) {
				return err
			}
			j.lose(j.conv.ID, "its messages cannot be read completely: %v", err)
			return nil
		}
		j.seen[m.ID] = true
		j.mention(m)
		key := cursor.MessagePrefix + j.conv.ID + ":" + m.ID
		if m.Problem != nil {
			j.lose(key, "%v", m.Problem)
		}
		if m.Raw != nil {
			j.messages++
			if err := j.keep(ctx, key, m.Raw); err != nil {
				return err
			}
		}
		if err := j.restorePoint(ctx, m); err != nil {
			return err
		}
	}
	return j.source.endSegment(ctx)
}

// restorePoint imports the state at a message: the one that the pointer names or, if
// that is lost, the one inside the row.
func (j *job) restorePoint(ctx context.Context, m cursor.Message) error {
	if !m.Head.IsZero() {
		ok, err := j.bring(ctx, cursor.MessageHeadPrefix+j.conv.ID+":"+m.ID, m.Head, nil)
		if err != nil {
			return err
		}
		if ok {
			j.plan = append(j.plan, restorePoint{m.ID, m.Head, m.Created})
			return nil
		}
	}
	if m.State == nil {
		return nil
	}
	ok, err := j.bring(ctx, cursor.MessagePrefix+j.conv.ID+":"+m.ID, m.State.ID, m.State.Data)
	if ok {
		j.plan = append(j.plan, restorePoint{m.ID, m.State.ID, m.Created})
	}
	return err
}

// bring imports a state. It reports an incomplete one and returns false.
func (j *job) bring(ctx context.Context, key string, root blob.ID, data []byte) (ok bool, err error) {
	_, err = j.carry.bring(ctx, graph.State, root, data)
	if err != nil && !fatal(ctx, err) {
		j.lose(key, "state %s is incomplete: %v", root.Short(), err)
		return false, nil
	}
	return err == nil, err
}

// readHeads imports the states at messages that have no row.
func (j *job) readHeads(ctx context.Context) error {
	if j.im.src.Kind() != cursor.KindEditor {
		return nil
	}
	prefix := cursor.MessageHeadPrefix + j.conv.ID + ":"
	for key, err := range j.im.src.Keys(ctx, prefix) {
		if err != nil {
			if fatal(ctx, err) {
				return err
			}
			j.lose(j.conv.ID, "its message pointers cannot be read completely: %v", err)
			return nil
		}
		message := key[len(prefix):]
		if j.seen[message] {
			continue
		}
		if err := j.readHead(ctx, key, message); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) readHead(ctx context.Context, key, message string) error {
	root, err := j.im.src.MessageHead(ctx, j.conv.ID, message)
	if err != nil && !fatal(ctx, err) {
		j.lose(key, "%v", err)
		return nil
	}
	if err != nil || root.IsZero() {
		return err
	}
	ok, err := j.bring(ctx, key, root, nil)
	if ok {
		j.plan = append(j.plan, restorePoint{message, root, time.Time{}})
	}
	return err
}

// readRuns imports the runs of an SDK agent, with the states after them.
func (j *job) readRuns(ctx context.Context) error {
	if k := j.im.src.Kind(); k != cursor.KindSDK && k != cursor.KindLines {
		return nil
	}
	for run, err := range j.im.src.Runs(ctx, j.conv.ID) {
		if err != nil && !fatal(ctx, err) {
			j.lose(j.conv.ID, "its runs cannot be read completely: %v", err)
			break
		}
		if err != nil {
			return err
		}
		j.extras++
		key := "run:" + run.ID
		if err := j.source.row(ctx, key, encode(run)); err != nil {
			return err
		}
		if err := j.readEvents(ctx, run); err != nil {
			return err
		}
		if run.Latest.IsZero() {
			continue
		}
		ok, err := j.bring(ctx, key, run.Latest, nil)
		if err != nil {
			return err
		}
		if ok {
			j.plan = append(j.plan, restorePoint{run.ID, run.Latest, run.Updated})
		}
	}
	return j.source.endSegment(ctx)
}

func (j *job) readEvents(ctx context.Context, run cursor.Run) error {
	for event, err := range j.im.src.Events(ctx, run.ID, 0) {
		if err != nil && !fatal(ctx, err) {
			j.lose("run:"+run.ID, "its events cannot be read completely: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
		if err := j.source.row(ctx, fmt.Sprintf("event:%s:%d", run.ID, event.Seq), encodeEvent(event)); err != nil {
			return err
		}
	}
	return nil
}

// encodeEvent encodes an event; a payload that is not JSON becomes text.
func encodeEvent(e cursor.Event) []byte {
	if !json.Valid(e.Payload) {
		e.Payload = encode(string(e.Payload))
	}
	return encode(e)
}

// findState finds the final state: the latest complete one, else one made from the
// messages.
func (j *job) findState(ctx context.Context) error {
	if j.conv.StateErr != nil {
		j.lose(j.conv.ID, "%v", j.conv.StateErr)
	}
	for _, state := range append([]*cursor.State{j.conv.State}, j.conv.Alternates...) {
		if state == nil || len(state.Data) == 0 {
			continue
		}
		ok, err := j.bring(ctx, j.conv.ID, state.ID, state.Data)
		if err != nil {
			return err
		}
		switch {
		case ok && j.final.IsZero():
			j.final = state.ID
		case ok: // two sources disagree: keep both
			j.plan = append(j.plan, restorePoint{alternateMessage + state.ID.Short(), state.ID, j.conv.Created})
		}
	}
	if !j.final.IsZero() {
		return nil
	}
	if n := len(j.plan); n > 0 {
		j.final = j.plan[n-1].root
		return nil
	}
	if j.messages == 0 {
		return nil
	}
	var err error
	j.final, err = j.rebuild(ctx)
	return err
}
