package agentrun

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protodelim"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Ledger remembers the calls of a conversation that were executed, and their results,
// so that a repeated request is not executed again. docs/format/agentrun.md describes
// its rows.
type Ledger struct {
	rows         kv.Store
	conversation string
}

// NewLedger returns the ledger of a conversation.
func NewLedger(rows kv.Store, conversation string) *Ledger {
	return &Ledger{rows: rows, conversation: conversation}
}

// Forms and states of a call's first row.
const (
	ledgerFormat  = 1
	ledgerStarted = 1
	ledgerDone    = 2
	// ledgerChunk is how many bytes of results a row holds.
	ledgerChunk = 1 << 20
	// ledgerFrame limits a single result when it is read back.
	ledgerFrame = 64 << 20
)

func (l *Ledger) key(call string, part uint64) string {
	return keyspace.Exec(l.conversation, call, part)
}

// begin records that a call is about to be executed. It fails with kv.ErrConflict if
// another process was faster.
func (l *Ledger) begin(ctx context.Context, call string) error {
	key := l.key(call, 0)
	err := l.rows.Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: key}},
		Set:    []kv.Set{{Key: key, Value: []byte{ledgerFormat, ledgerStarted}}},
	})
	if err != nil {
		return fmt.Errorf("note call: %w", err)
	}
	return nil
}

// finish records the results of a call.
func (l *Ledger) finish(ctx context.Context, call string, frames []*agentv1.AgentClientMessage) error {
	var all bytes.Buffer
	for _, f := range frames {
		if _, err := protodelim.MarshalTo(&all, f); err != nil {
			return fmt.Errorf("note result: %w", err)
		}
	}
	data := all.Bytes()
	batch := &kv.Batch{}
	var parts uint64
	for len(data) > 0 {
		n := min(len(data), ledgerChunk)
		parts++
		batch.Set = append(batch.Set, kv.Set{Key: l.key(call, parts), Value: data[:n]})
		data = data[n:]
	}
	head := binary.AppendUvarint([]byte{ledgerFormat, ledgerDone}, parts)
	batch.Set = append(batch.Set, kv.Set{Key: l.key(call, 0), Value: head})
	if err := l.rows.Commit(ctx, batch); err != nil {
		return fmt.Errorf("note result: %w", err)
	}
	return nil
}

// look returns whether a call was begun, and its results if it was finished.
func (l *Ledger) look(ctx context.Context, call string) (begun bool, frames []*agentv1.AgentClientMessage, err error) {
	row, err := l.rows.Get(ctx, l.key(call, 0))
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, fmt.Errorf("look up call: %w", err)
	}
	head := row.Value
	switch {
	case len(head) < 2 || head[0] == 0:
		return false, nil, fmt.Errorf("look up call: %w: its first row has %d bytes", kv.ErrCorrupt, len(head))
	case head[0] > ledgerFormat:
		return false, nil, fmt.Errorf("look up call: %w: format %d", ErrUnsupported, head[0])
	case head[1] == ledgerStarted:
		return true, nil, nil
	}
	parts, n := binary.Uvarint(head[2:])
	if n <= 0 {
		return false, nil, fmt.Errorf("look up call: %w: the number of parts is missing", kv.ErrCorrupt)
	}
	frames, err = l.results(ctx, call, parts)
	return true, frames, err
}

func (l *Ledger) results(ctx context.Context, call string, parts uint64) ([]*agentv1.AgentClientMessage, error) {
	var all bytes.Buffer
	for part := uint64(1); part <= parts; part++ {
		row, err := l.rows.Get(ctx, l.key(call, part))
		if err != nil {
			return nil, fmt.Errorf("look up result: %w", err)
		}
		all.Write(row.Value)
	}
	var frames []*agentv1.AgentClientMessage
	for {
		f := new(agentv1.AgentClientMessage)
		err := protodelim.UnmarshalOptions{MaxSize: ledgerFrame}.UnmarshalFrom(&all, f)
		if errors.Is(err, io.EOF) {
			return frames, nil
		}
		if err != nil {
			return nil, fmt.Errorf("look up result: %w: %w", kv.ErrCorrupt, err)
		}
		frames = append(frames, f)
	}
}

// Clear forgets all calls. Run does so at the end of a turn, because its calls are
// then part of the saved state.
func (l *Ledger) Clear(ctx context.Context) error {
	if err := l.rows.Commit(ctx, &kv.Batch{DeleteRange: []kv.Range{keyspace.Execs(l.conversation)}}); err != nil {
		return fmt.Errorf("clear ledger: %w", err)
	}
	return nil
}
