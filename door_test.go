package stet

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Rows that no reader accepts do not get into a store by any writer.
func TestTheDoorRefusesWhatNoReaderAccepts(t *testing.T) {
	root := blob.Sum(nil).Bytes()
	long := strings.Repeat("x", 404)
	const checkpoint, other = "01m7fwtdh1aaaaaaaaaaaaaaaa", "01m7fwtdh1aaaaaaaaaaaaaaab"
	node := []byte{1, 2, 3, 4}
	for name, row := range map[string]struct {
		key   string
		value any
	}{
		"a save that is its own parent":     {keyspace.Save("c", 1), &stetv1.SaveRecord{Format: 1, Seq: 1, Parent: 1, Root: root}},
		"a save with the last number":       {keyspace.Save("c", math.MaxUint64), &stetv1.SaveRecord{Format: 1, Seq: math.MaxUint64, Root: root}},
		"a save under another number":       {keyspace.Save("c", 2), &stetv1.SaveRecord{Format: 1, Seq: 3, Root: root}},
		"a save without a root":             {keyspace.Save("c", 2), &stetv1.SaveRecord{Format: 1, Seq: 2}},
		"a save of a newer release":         {keyspace.Save("c", 2), &stetv1.SaveRecord{Format: 9, Seq: 2, Root: root}},
		"a record of another id":            {keyspace.Conversation("c"), &stetv1.ConversationRecord{Format: 1, Id: "d", Epoch: 1}},
		"a record with a long id":           {keyspace.Conversation(long), &stetv1.ConversationRecord{Format: 1, Id: long, Epoch: 1}},
		"a record with the last epoch":      {keyspace.Conversation("c"), &stetv1.ConversationRecord{Format: 1, Id: "c", Epoch: math.MaxUint64}},
		"a head that is not an id":          {keyspace.Head("c"), []byte("none")},
		"a list row of a long id":           {keyspace.ByTime(1, long), []byte(nil)},
		"a list row beyond all times":       {keyspace.ByTime(-1, "c"), []byte(nil)},
		"a pin of another name":             {keyspace.Pin("p"), &stetv1.PinRecord{Format: 1, Name: "q", Conversation: "c", Seq: 1, Root: root}},
		"a checkpoint of another id":        {keyspace.Checkpoint(checkpoint), &stetv1.CheckpointRecord{Format: 1, Id: other, Number: 1, Workspace: "w"}},
		"a checkpoint without a number":     {keyspace.Checkpoint(checkpoint), &stetv1.CheckpointRecord{Format: 1, Id: checkpoint, Workspace: "w"}},
		"a checkpoint that is its parent":   {keyspace.Checkpoint(checkpoint), &stetv1.CheckpointRecord{Format: 1, Id: checkpoint, Number: 1, Workspace: "w", Parent: checkpoint}},
		"a workspace with the last number":  {keyspace.Workspace("w"), &stetv1.WorkspaceRecord{Format: 1, Id: "w", Nonce: node, LastNumber: math.MaxUint64}},
		"a workspace without a nonce":       {keyspace.Workspace("w"), &stetv1.WorkspaceRecord{Format: 1, Id: "w"}},
		"an operation with the last number": {keyspace.Operation(math.MaxUint64), &stetv1.OperationRecord{Format: 1, Seq: math.MaxUint64}},
		"a pin of no checkpoint":            {keyspace.SharedCheckpointPin("p"), &stetv1.CheckpointPin{Format: 1, Name: "p", Checkpoint: "x"}},
		"a pin of no workspace":             {keyspace.CheckpointPin("p", ""), &stetv1.CheckpointPin{Format: 2, Name: "p", Checkpoint: checkpoint}},
		"a pin of another workspace":        {keyspace.CheckpointPin("p", "v"), &stetv1.CheckpointPin{Format: 2, Name: "p", Workspace: "w", Checkpoint: checkpoint}},
		"a journal of another workspace":    {keyspace.Journal("w"), &stetv1.JournalRecord{Format: 1, Workspace: "v"}},
		"a list row of no checkpoint":       {keyspace.WorkspaceCheckpoint("w", "x"), []byte(nil)},
		"an agent with the last event":      {keyspace.Agent("a"), &stetv1.AgentRecord{Format: 1, Id: "a", Epoch: 1, Head: &stetv1.AgentPosition{Seq: math.MaxUint64}}},
		"an event under another number":     {keyspace.AgentEvent("a", 2), binary.BigEndian.AppendUint64(nil, 1)},
		"metadata that is not base64":       {keyspace.AgentMetadata("a"), []byte("%")},
	} {
		t.Run(name, func(t *testing.T) {
			db := openOver(t, memBackend(), nil)
			value, ok := row.value.([]byte)
			if m, isMessage := row.value.(proto.Message); !ok && isMessage {
				var err error
				if value, err = proto.Marshal(m); err != nil {
					t.Fatal(err)
				}
			}
			err := db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "other", Value: []byte("row")}, {Key: row.key, Value: value}}})
			if !errors.Is(err, kv.ErrInvalidBatch) || kv.Damaged(err) {
				t.Errorf("got %v, want %v", err, kv.ErrInvalidBatch)
			}
			if _, err := db.Rows().Get(t.Context(), "other"); !errors.Is(err, kv.ErrNotFound) {
				t.Errorf("the rest of the batch: %v", err)
			}
			if page, err := db.Conversations().List(t.Context(), nil); err != nil || len(page.Conversations) > 0 {
				t.Errorf("list: %v, %v", page, err)
			}
		})
	}
}

// The number after the highest one is an error, and never 0.
func TestAFullHistoryIsAnError(t *testing.T) {
	db := openOver(t, memBackend(), nil)
	ctx := t.Context()
	c, err := db.Conversations().Create(ctx, conversation.Info{ID: "full"})
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Save(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	value, err := proto.Marshal(&stetv1.SaveRecord{Format: 1, Seq: conversation.MaxSeq, Parent: 1, Root: first.Root.Bytes(), TimeMs: first.Time.UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Rows().Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: keyspace.Save("full", conversation.MaxSeq), Value: value}}}); err != nil {
		t.Fatal(err)
	}
	if c, err = db.Conversations().Open(ctx, "full"); err != nil {
		t.Fatal(err)
	}
	saved, err := c.Save(ctx, &conversation.SaveOptions{MessageID: "more"})
	if !errors.Is(err, conversation.ErrInvalid) {
		t.Errorf("got save %d and %v, want an error", saved.Seq, err)
	}
	if saved, err = c.Rewind(ctx, 1, nil); !errors.Is(err, conversation.ErrInvalid) {
		t.Errorf("got save %d and %v, want an error", saved.Seq, err)
	}
}
