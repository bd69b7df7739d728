package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

const (
	// partBytes is about how much one part of an outgoing conversation holds.
	partBytes = 1 << 20
	// pieceBytes is the most of a blob that one part holds.
	pieceBytes = 512 << 10
)

// Piece is a part of a blob. The pieces of a blob follow each other.
type Piece struct {
	ID blob.ID
	// Size is the length of the whole blob.
	Size int64
	Data []byte
}

// Part is a part of a conversation on its way: rows, or pieces of blobs.
type Part struct {
	Rows   []kv.Row
	Pieces []Piece
}

// Wire returns the part as it is sent.
func (p Part) Wire() *stetv1.ConversationPart {
	out := &stetv1.ConversationPart{}
	for _, row := range p.Rows {
		out.Rows = append(out.Rows, &stetv1.Row{Key: []byte(row.Key), Value: row.Value})
	}
	for _, piece := range p.Pieces {
		out.Pieces = append(out.Pieces, &stetv1.BlobPiece{Id: piece.ID.Bytes(), Size: piece.Size, Data: piece.Data})
	}
	return out
}

// ParsePart is the inverse of Wire. It rejects invalid keys and ids.
func ParsePart(p *stetv1.ConversationPart) (Part, error) {
	var out Part
	for _, row := range p.GetRows() {
		if err := kv.CheckKey(string(row.GetKey())); err != nil {
			return Part{}, err
		}
		out.Rows = append(out.Rows, kv.Row{Key: string(row.GetKey()), Value: row.GetValue()})
	}
	for _, piece := range p.GetPieces() {
		id, err := blob.IDFromBytes(piece.GetId())
		if err != nil {
			return Part{}, err
		}
		out.Pieces = append(out.Pieces, Piece{ID: id, Size: piece.GetSize(), Data: piece.GetData()})
	}
	return out, nil
}

// Rows yields the rows that belong to a conversation, a part at a time: its record and
// saves, its checkpoints with their workspaces, message heads, JSON checkpoints and tool
// calls. The error is ErrNotFound if there is no such conversation.
func Rows(ctx context.Context, from Side, id string, emit func([]kv.Row) error) error {
	if err := kv.CheckKey(keyspace.Conversation(id)); err != nil {
		return err
	}
	record, err := from.Rows.Get(ctx, keyspace.Conversation(id))
	if errors.Is(err, kv.ErrNotFound) {
		return fmt.Errorf("conversation %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return err
	}
	if err := emit([]kv.Row{record}); err != nil {
		return err
	}
	for _, in := range []kv.Range{
		keyspace.Saves(id), keyspace.MessageHeads(id), keyspace.JSONCheckpoints(id), keyspace.Execs(id), keyspace.ConversationCheckpoints(id),
	} {
		if err := pages(ctx, from.Rows, in, emit); err != nil {
			return err
		}
	}
	return checkpointRows(ctx, from, id, emit)
}

// pages emits the rows of a range.
func pages(ctx context.Context, from kv.Store, in kv.Range, emit func([]kv.Row) error) error {
	for {
		rows, err := readPage(ctx, from, in)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := emit(rows); err != nil {
			return err
		}
		in.Start = rows[len(rows)-1].Key + "\x00"
	}
}

// checkpointRows emits the checkpoints of a conversation and their workspaces.
func checkpointRows(ctx context.Context, from Side, id string, emit func([]kv.Row) error) error {
	workspaces := make(map[string]bool)
	for listed, err := range from.Rows.Scan(ctx, keyspace.ConversationCheckpoints(id), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return err
		}
		row, err := get(ctx, from.Rows, keyspace.Checkpoint(keyspace.Last(listed.Key)))
		if err != nil {
			return err
		}
		if row.Version == 0 {
			continue // removed since it was listed
		}
		rec := new(stetv1.CheckpointRecord)
		if err := decode(row, rec); err != nil {
			return err
		}
		rows := []kv.Row{row}
		if ws := rec.GetWorkspace(); !workspaces[ws] {
			workspaces[ws] = true
			place, err := get(ctx, from.Rows, keyspace.Workspace(ws))
			if err != nil {
				return err
			}
			if place.Version != 0 {
				rows = append(rows, place)
			}
		}
		if err := emit(rows); err != nil {
			return err
		}
	}
	return nil
}

// Needed returns the blobs of a conversation that the other side lacks, and what moving it
// would do there. It reads both sides and writes nothing. An empty other side lacks all
// blobs.
func Needed(ctx context.Context, from, to Side, id string, opts *Options) (Moved, []blob.ID, error) {
	m := &mover{from: from, to: to, report: &Report{}}
	m.forget()
	if opts != nil {
		m.opts = *opts
	}
	m.opts.DryRun, m.opts.Progress = true, nil
	if from.Encrypted && !to.Encrypted && !m.opts.AllowPlain {
		return Moved{}, nil, ErrPlain
	}
	err := m.conversation(ctx, id)
	moved := Moved{ID: id}
	if n := len(m.report.Conversations); n > 0 {
		moved = m.report.Conversations[n-1]
	}
	if err != nil {
		err = fmt.Errorf("move conversation %s: %w", id, err)
	}
	return moved, m.lacks, err
}

// Blobs returns all blobs of a conversation.
func Blobs(ctx context.Context, from Side, id string) ([]blob.ID, error) {
	to := Side{Blobs: nothing{}, Rows: memkv.New(nil), Encrypted: from.Encrypted}
	_, blobs, err := Needed(ctx, from, to, id, nil)
	return blobs, err
}

// nothing is a store that has no blob and takes none.
type nothing struct{}

func (nothing) Get(_ context.Context, id blob.ID) ([]byte, error) { return nil, blob.NotFound(id) }

func (nothing) Put(context.Context, ...blob.Blob) error { return blob.ErrReadOnly }

func (nothing) Has(_ context.Context, ids ...blob.ID) ([]bool, error) {
	return make([]bool, len(ids)), nil
}

func (nothing) Flush(context.Context) error { return nil }

// Anything reports whether there is anything to move.
func (m Moved) Anything() bool {
	return m.Status == Created || m.Status == Updated || m.Status == Forced || m.Saves+m.Checkpoints+m.Rows > 0
}

// Send emits a conversation in parts: all of its rows, then the given blobs. An Incoming
// on the other side takes them.
func Send(ctx context.Context, from Side, id string, blobs []blob.ID, emit func(Part) error) error {
	if err := Rows(ctx, from, id, func(rows []kv.Row) error { return emit(Part{Rows: rows}) }); err != nil {
		return err
	}
	return SendBlobs(ctx, from, blobs, emit)
}

// SendBlobs emits blobs in pieces.
func SendBlobs(ctx context.Context, from Side, blobs []blob.ID, emit func(Part) error) error {
	var part Part
	size := 0
	for _, id := range blobs {
		data, err := from.Blobs.Get(ctx, id)
		if err != nil {
			return incomplete(err)
		}
		first := true
		for piece := range slices.Chunk(data, pieceBytes) {
			if size+len(piece) > partBytes && size > 0 {
				if err := emit(part); err != nil {
					return err
				}
				part, size = Part{}, 0
			}
			part.Pieces = append(part.Pieces, Piece{ID: id, Size: int64(len(data)), Data: piece})
			size, first = size+len(piece)+blob.IDSize, false
		}
		if first { // an empty blob has no chunks
			part.Pieces = append(part.Pieces, Piece{ID: id})
			size += blob.IDSize
		}
	}
	if len(part.Pieces) == 0 {
		return nil
	}
	return emit(part)
}
