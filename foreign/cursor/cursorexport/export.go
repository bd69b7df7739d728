package cursorexport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/transcript"
)

// Options configure Export. The zero value, and nil, make a file with nothing else in it.
type Options struct {
	// Base is a state.vscdb that is copied first. Its rows of the exported conversations
	// are replaced in the copy.
	Base string
	// Damaged, if not nil, is called for a conversation that is partly lost; Export then
	// leaves it out and continues. Without it Export fails.
	Damaged func(conversation string, err error)
}

// Result counts what an export wrote.
type Result struct {
	Conversations, Messages, Checkpoints, Rows int
	Blobs, Bytes                               int64
	// Empty are conversations that have nothing to write.
	Empty []string
	// LeftOut are paths in checkpoints that the editor's form cannot hold, such as links.
	LeftOut []string
}

// Export writes conversations into a new state.vscdb: the blobs of their states, the
// pointers to them, JSON checkpoints and cloud agents. An imported conversation gets
// its original rows; another one gets rows and messages made from its state, and JSON
// checkpoints made from those of the store. If a part is lost, the error is a
// cursor.DataLossError and no file is created. If all conversations are empty, the
// error is conversation.ErrNotFound and no file is created either.
func Export(ctx context.Context, src cursorimport.Target, path string, ids []string, opts *Options) (Result, error) {
	if opts == nil {
		opts = &Options{}
	}
	if err := checkIDs(ids); err != nil {
		return Result{}, err
	}
	e := newExporter(src, opts)
	err := cursor.Create(ctx, path, &cursor.CreateOptions{Base: opts.Base}, func(w *cursor.Writer) error {
		e.to = w
		for _, id := range ids {
			if err := e.conversation(ctx, id); err != nil {
				return fmt.Errorf("export %s: %w", id, err)
			}
		}
		if e.result.Conversations == 0 {
			return fmt.Errorf("nothing to export: %w", conversation.ErrNotFound)
		}
		return w.List(ctx, e.headers...)
	})
	if err != nil {
		return Result{Empty: e.result.Empty}, err
	}
	return e.result, nil
}

// checkIDs rejects conversations whose keys the editor would mistake for those of
// another one: its keys join ids with ':' unescaped.
func checkIDs(ids []string) error {
	all := make(map[string]bool, len(ids))
	for _, id := range ids {
		all[id] = true
	}
	for _, id := range ids {
		for i := range id {
			if id[i] == ':' && all[id[:i]] {
				return fmt.Errorf("%w: the keys of %s look like those of %s; export them into two files", cursor.ErrUnsupported, id, id[:i])
			}
		}
	}
	return nil
}

type exporter struct {
	src     cursorimport.Target
	opts    *Options
	store   *conversation.Store
	reader  *transcript.Reader
	saved   *checkpoint.Service
	to      *cursor.Writer
	seen    *graph.Set
	written map[blob.ID]struct{}
	headers []cursor.Header
	result  Result
	batch   []cursor.Row
	size    int
}

func newExporter(src cursorimport.Target, opts *Options) *exporter {
	store := conversation.New(src.Blobs, src.Rows, nil)
	return &exporter{
		src: src, opts: opts, store: store, reader: transcript.New(store, src.Blobs), saved: checkpoint.New(src.Blobs, src.Rows, nil),
		seen: new(graph.Set), written: map[blob.ID]struct{}{},
	}
}

// batchSize is about how much is written in one transaction.
const batchSize = 4 << 20

// conversation writes one conversation. One that is partly lost is left out entirely
// if the caller wants to continue.
func (e *exporter) conversation(ctx context.Context, id string) error {
	if err := e.to.Remove(ctx, id); err != nil {
		return err
	}
	before := e.result
	err := e.parts(ctx, id)
	if err == nil {
		err = e.flush(ctx)
	}
	if err == nil || e.opts.Damaged == nil || fault.Of(err) != fault.Damaged {
		return err
	}
	e.opts.Damaged(id, err)
	e.batch, e.size = nil, 0
	// Blobs stay: their rows name no conversation, and another conversation may need
	// them.
	blobs, bytes := e.result.Blobs, e.result.Bytes
	e.result = before
	e.result.Blobs, e.result.Bytes = blobs, bytes
	return e.to.Remove(ctx, id)
}

// parts writes the blobs of a conversation, and then what names them.
func (e *exporter) parts(ctx context.Context, id string) error {
	info, err := e.store.Get(ctx, id)
	if err != nil {
		return err
	}
	before := e.result.Rows
	inAgent, err := e.agent(ctx, info)
	if err != nil {
		return err
	}
	if !info.Root.IsZero() {
		if err := e.pointer(ctx, cursor.HeadPrefix+id, info.Root, !inAgent); err != nil {
			return err
		}
	}
	if err := e.messageHeads(ctx, info); err != nil {
		return err
	}
	if err := e.checkpoints(ctx, info); err != nil {
		return err
	}
	listed, err := e.source(ctx, info)
	if err != nil {
		return err
	}
	if !listed && !inAgent && !info.Root.IsZero() {
		if err := e.composer(ctx, info); err != nil {
			return err
		}
		listed = true
	}
	if e.result.Rows == before {
		e.result.Empty = append(e.result.Empty, id)
		return nil
	}
	if listed {
		e.headers = append(e.headers, headerOf(info))
	}
	e.result.Conversations++
	return nil
}

// messageHeads writes the states at messages. States that an import kept beside the chosen
// one have no pointer in the editor's store, but a row of the source may hold them.
func (e *exporter) messageHeads(ctx context.Context, info conversation.Info) error {
	for p, err := range e.store.MessageHeads(ctx, info.ID) {
		if err != nil {
			return err
		}
		own := cursorimport.OwnMessage(p.MessageID)
		if own && !cursorimport.Alternate(p.MessageID) {
			continue
		}
		if err := e.pointer(ctx, cursor.MessageHeadPrefix+info.ID+":"+p.MessageID, p.Root, !own); err != nil {
			return err
		}
	}
	return nil
}

// pointer copies a state and writes the row that names it.
func (e *exporter) pointer(ctx context.Context, key string, root blob.ID, write bool) error {
	err := e.copy(ctx, key, graph.State, root)
	if err != nil || !write {
		return err
	}
	return e.row(ctx, key, []byte(root.String()))
}

// agent writes the cloud agent of a conversation, if there is one, and reports whether
// the agent's state holds the current one of the conversation. The conversation then needs
// no pointer of its own.
func (e *exporter) agent(ctx context.Context, info conversation.Info) (inAgent bool, err error) {
	row, err := e.src.Rows.Get(ctx, keyspace.AgentMetadata(info.ID))
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	agent := cursor.DecodeCloudAgent(info.ID, row.Value)
	if agent.Problem != nil {
		return false, agent.Problem
	}
	key := info.ID + cursor.CloudAgentSuffix
	if err := e.copy(ctx, key, graph.CloudState, agent.State); err != nil {
		return false, err
	}
	if err := e.row(ctx, key, row.Value); err != nil {
		return false, err
	}
	data, err := e.src.Blobs.Get(ctx, agent.State)
	if err != nil {
		return false, lost(key, agent.State, err)
	}
	state, err := cursor.StateInAgent(data)
	if err != nil {
		return false, lost(key, agent.State, err)
	}
	return info.Root.IsZero() || state != nil && state.ID == info.Root, nil
}

// checkpoints writes the JSON checkpoints. Those that an import found inside an old row
// are still in it.
func (e *exporter) checkpoints(ctx context.Context, info conversation.Info) error {
	for row, err := range e.src.Rows.Scan(ctx, keyspace.JSONCheckpoints(info.ID), kv.ScanOptions{}) {
		if err != nil {
			return err
		}
		id := keyspace.Last(row.Key)
		if strings.HasPrefix(id, cursor.InlineCheckpoint) {
			continue
		}
		key := cursor.CheckpointPrefix + info.ID + ":" + id
		if err := e.contents(ctx, key, id, row.Value); err != nil {
			return err
		}
		e.result.Checkpoints++
		if err := e.row(ctx, key, row.Value); err != nil {
			return err
		}
	}
	return nil
}

// contents copies the blobs that a JSON checkpoint refers to.
func (e *exporter) contents(ctx context.Context, key, id string, row []byte) error {
	cp, err := cursor.DecodeCheckpoint(id, row)
	if err != nil {
		return &cursor.DataLossError{Source: key, Err: err}
	}
	return e.putOnce(ctx, key, cp.Blobs())
}

// putOnce copies blobs that were not copied yet.
func (e *exporter) putOnce(ctx context.Context, key string, ids []blob.ID) error {
	var fresh []blob.ID
	for _, id := range ids {
		if _, done := e.written[id]; !done {
			e.written[id] = struct{}{}
			fresh = append(fresh, id)
		}
	}
	return e.put(ctx, key, fresh)
}

// row adds a row. Text has the class TEXT, as all rows of the editor but its blobs.
func (e *exporter) row(ctx context.Context, key string, value []byte) error {
	class := cursor.ClassText
	if !utf8.Valid(value) {
		class = cursor.ClassBlob
	}
	e.batch = append(e.batch, cursor.Row{Key: key, Value: cursor.Value{Class: class, Data: value}})
	e.result.Rows++
	if e.size += len(key) + len(value); e.size < batchSize {
		return nil
	}
	return e.flush(ctx)
}

func (e *exporter) flush(ctx context.Context) error {
	rows := e.batch
	e.batch, e.size = nil, 0
	if len(rows) == 0 {
		return nil
	}
	return e.to.Set(ctx, rows...)
}

// copy copies everything that can be reached from a root.
func (e *exporter) copy(ctx context.Context, key string, kind graph.Kind, root blob.ID) error {
	var ids []blob.ID
	opts := &graph.Options{Seen: e.seen}
	err := graph.Walk(ctx, e.src.Blobs, graph.Roots(graph.Root{Kind: kind, ID: root}), opts, func(n graph.Node) error {
		if n.Err != nil {
			return lost(key, n.ID, n.Err)
		}
		ids = append(ids, n.ID)
		return nil
	})
	if err != nil {
		return err
	}
	return e.putOnce(ctx, key, ids)
}

func (e *exporter) put(ctx context.Context, key string, ids []blob.ID) error {
	var batch []blob.Blob
	size := 0
	for i, id := range ids {
		data, err := e.src.Blobs.Get(ctx, id)
		if err != nil {
			return lost(key, id, err)
		}
		batch, size = append(batch, blob.Blob{ID: id, Data: data}), size+len(data)
		if size < batchSize && i < len(ids)-1 {
			continue
		}
		if err := e.to.Blobs().Put(ctx, batch...); err != nil {
			return err
		}
		e.result.Blobs += int64(len(batch))
		e.result.Bytes += int64(size)
		batch, size = nil, 0
	}
	return nil
}

// lost returns a missing or damaged blob as a loss of data of the row that needs it.
func lost(key string, id blob.ID, err error) error {
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) || errors.Is(err, graph.ErrMalformed) || errors.Is(err, cursor.ErrMalformed) {
		return &cursor.DataLossError{Source: key, Err: fmt.Errorf("blob %s: %w", id.Short(), err)}
	}
	return err
}
