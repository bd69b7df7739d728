package cursorimport

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// A conversation's source is what states cannot hold: the original rows, and the
// first known contents of files. It is stored as the files of a separate state, under
// the head of a message id that no editor creates, so that collectors keep it, checks
// cover it, and deleting the conversation deletes it too.
const (
	sourceMessage = "cursor:source"
	agentMessage  = "cursor:cloud-agent"
	// alternateMessage is the prefix for states that were not chosen.
	alternateMessage = "cursor:alternate:"

	rowsPrefix     = "rows/"  // segments of rows, in order
	originalsEntry = "v0/"    // and the URI
	blobsPrefix    = "blobs/" // and the id
)

// OwnMessage reports whether an import uses a message id for data of its own: no
// imported program uses such ids.
func OwnMessage(id string) bool {
	return id == sourceMessage || id == agentMessage || Alternate(id)
}

// Alternate reports whether an import keeps a state under a message id because a second
// source of the conversation's state differs from the chosen one.
func Alternate(id string) bool { return strings.HasPrefix(id, alternateMessage) }

// segmentSize is the size at which a segment of rows ends. Segments are large enough
// to compress well, and small enough that a growing conversation shares all but the
// last.
const segmentSize = 1 << 20

// SourceRow is a row of the store that a conversation was imported from.
type SourceRow struct {
	Key   string
	Value []byte
}

type rowJSON struct {
	Key string `json:"key"`
	// Value is the value if it is text, Base64 otherwise.
	Value  *string `json:"value,omitempty"`
	Base64 string  `json:"base64,omitempty"`
}

// sourceWriter writes the source of one conversation.
type sourceWriter struct {
	im    *importer
	state *agentv1.ConversationStateStructure
	parts []blob.ID
	buf   bytes.Buffer
	rows  int // segments
}

func newSourceWriter(im *importer) *sourceWriter {
	return &sourceWriter{im: im, state: &agentv1.ConversationStateStructure{FileStatesV2: map[string]*agentv1.FileStateStructure{}}}
}

// row adds a row.
func (w *sourceWriter) row(ctx context.Context, key string, value []byte) error {
	line := rowJSON{Key: key}
	if utf8.Valid(value) {
		text := string(value)
		line.Value = &text
	} else {
		line.Base64 = base64.StdEncoding.EncodeToString(value)
	}
	w.buf.Write(encode(line))
	w.buf.WriteByte('\n')
	if w.buf.Len() >= segmentSize {
		return w.endSegment(ctx)
	}
	return nil
}

// endSegment stores the rows added since the last segment.
func (w *sourceWriter) endSegment(ctx context.Context) error {
	if w.buf.Len() == 0 {
		return nil
	}
	id, err := w.part(ctx, w.buf.Bytes())
	if err != nil {
		return err
	}
	w.state.FileStatesV2[fmt.Sprintf("%s%08d", rowsPrefix, w.rows)] = &agentv1.FileStateStructure{Content: id.Bytes()}
	w.rows++
	w.buf.Reset()
	return nil
}

// original adds V0 of a file. A file that the conversation created has none.
func (w *sourceWriter) original(ctx context.Context, uri string, o cursor.Original) error {
	entry := &agentv1.FileStateStructure{}
	if !o.NewlyCreated {
		id, err := w.part(ctx, []byte(o.Content))
		if err != nil {
			return err
		}
		entry.InitialContent = id.Bytes()
	}
	w.state.FileStatesV2[originalsEntry+uri] = entry
	return nil
}

// keep makes stored blobs part of the source.
func (w *sourceWriter) keep(ids []blob.ID) {
	for _, id := range ids {
		w.state.FileStatesV2[blobsPrefix+id.String()] = &agentv1.FileStateStructure{Content: id.Bytes()}
	}
	w.parts = append(w.parts, ids...)
}

func (w *sourceWriter) part(ctx context.Context, data []byte) (blob.ID, error) {
	b := blob.New(data)
	w.parts = append(w.parts, b.ID)
	return b.ID, w.im.putNew(ctx, b)
}

// end stores the state that refers to all of it.
func (w *sourceWriter) end(ctx context.Context) (blob.ID, error) {
	if err := w.endSegment(ctx); err != nil {
		return blob.ID{}, err
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(w.state)
	if err != nil {
		return blob.ID{}, fmt.Errorf("encode source: %w", err)
	}
	if _, err := cursor.NewState(data, "source").Decode(); err != nil {
		return blob.ID{}, fmt.Errorf("source: %w", err)
	}
	return w.part(ctx, data)
}

// anchor makes a source part of a conversation and reports whether that is a change.
func (im *importer) anchor(ctx context.Context, conv, message string, id blob.ID, parts []blob.ID) (bool, error) {
	old, err := im.store.MessageHead(ctx, conv, message)
	switch {
	case err == nil && old == id || im.opts.DryRun:
		return false, nil
	case err != nil && !errors.Is(err, conversation.ErrNotFound):
		return false, target(err)
	}
	err = im.dst.Rows.Commit(ctx, &kv.Batch{
		Set:  []kv.Set{{Key: keyspace.MessageHead(conv, message), Value: []byte(id.String())}},
		Refs: parts,
	})
	return true, target(err)
}

// Source is what an import stored of a conversation in addition to its states.
type Source struct {
	blobs     blob.Store
	segments  []blob.ID
	originals map[string]blob.ID // zero for a file that the conversation created
}

// ReadSource returns the source of an imported conversation. If it was not imported,
// the error wraps ErrNotFound.
func ReadSource(ctx context.Context, from Target, conv string) (*Source, error) {
	root, err := conversation.New(from.Blobs, from.Rows, nil).MessageHead(ctx, conv, sourceMessage)
	if errors.Is(err, conversation.ErrNotFound) {
		return nil, fmt.Errorf("read source of %s: %w", conv, cursor.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	data, err := from.Blobs.Get(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("read source of %s: %w", conv, err)
	}
	state, err := cursor.NewState(data, "source").Decode()
	if err != nil {
		return nil, fmt.Errorf("read source of %s: %w", conv, err)
	}
	s := &Source{blobs: from.Blobs, originals: map[string]blob.ID{}}
	for _, name := range slices.Sorted(maps.Keys(state.FileStatesV2)) {
		entry := state.FileStatesV2[name]
		if uri, ok := strings.CutPrefix(name, originalsEntry); ok {
			s.originals[uri], _ = blob.IDFromBytes(entry.InitialContent)
		} else if id, err := blob.IDFromBytes(entry.Content); err == nil && strings.HasPrefix(name, rowsPrefix) {
			s.segments = append(s.segments, id)
		}
	}
	return s, nil
}

// Originals returns the first known contents of files, V0, by URI.
func (s *Source) Originals(ctx context.Context) (map[string]jsoncheckpoint.Original, error) {
	out := make(map[string]jsoncheckpoint.Original, len(s.originals))
	for uri, id := range s.originals {
		if id.IsZero() {
			out[uri] = jsoncheckpoint.Original{NewlyCreated: true}
			continue
		}
		data, err := s.blobs.Get(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("read original of %s: %w", uri, err)
		}
		out[uri] = jsoncheckpoint.Original{Content: string(data)}
	}
	return out, nil
}

// Rows yields the original rows: the messages in order, other rows about the
// conversation, and the conversation's own row as the last.
func (s *Source) Rows(ctx context.Context) iter.Seq2[SourceRow, error] {
	return func(yield func(SourceRow, error) bool) {
		for _, id := range s.segments {
			data, err := s.blobs.Get(ctx, id)
			if err != nil {
				yield(SourceRow{}, fmt.Errorf("read source: %w", err))
				return
			}
			for line := range bytes.Lines(data) {
				row, err := decodeSourceRow(line)
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

func decodeSourceRow(line []byte) (SourceRow, error) {
	var r rowJSON
	if err := json.Unmarshal(line, &r); err != nil {
		return SourceRow{}, fmt.Errorf("read source: %w: %w", cursor.ErrMalformed, err)
	}
	if r.Value != nil {
		return SourceRow{r.Key, []byte(*r.Value)}, nil
	}
	value, err := base64.StdEncoding.DecodeString(r.Base64)
	if err != nil {
		return SourceRow{}, fmt.Errorf("read source: %w: %w", cursor.ErrMalformed, err)
	}
	return SourceRow{r.Key, value}, nil
}
