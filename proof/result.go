package proof

import (
	"crypto/ed25519"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Result is what a valid proof shows.
type Result struct {
	// Time is when the proof was signed, by the clock of the signer.
	Time time.Time
	// Key is the key that signed it.
	Key ed25519.PublicKey
	// Conversation or Checkpoint is what the proof is about. Group is the name of the
	// group that it belongs to.
	Conversation, Checkpoint, Group string
	// Title is the title of the conversation, if the proof has its record.
	Title string
	// Contents means that contents are in the proof, not only their hashes.
	Contents bool
	// LogEntries and LogLink are the end of the log of operations; Groups and Root are
	// the tree over everything that the store held.
	LogEntries, Groups uint64
	LogLink, Root      blob.ID

	Saves       []Save
	Checkpoints []Checkpoint
	Operations  []Operation
	// RemovedSaves are the numbers of saves that the store no longer had.
	RemovedSaves []uint64
	// Rewritten are the rows that were changed after they were first written: by a
	// purge, or by a move to another directory.
	Rewritten []Rewritten
	// Gone are blobs that a row or another blob names but that the store no longer had.
	Gone []blob.ID
	// Blobs counts the blobs in the proof; Hashes counts those of which it has only the
	// hash.
	Blobs, Hashes int

	nodes   map[blob.ID][]byte // directories
	missing int                // blobs that should be in the proof
}

// Save is a save of the conversation.
type Save struct {
	Seq  uint64
	Root blob.ID
	Time time.Time
}

// Checkpoint is a checkpoint of the conversation.
type Checkpoint struct {
	ID, Name, Workspace string
	Time                time.Time
	Tree                blob.ID
}

// Operation is an entry of the log that concerns the subject of the proof.
type Operation struct {
	Seq               uint64
	Kind, Description string
	Time              time.Time
}

// Rewritten is a row that was changed after it was first written.
type Rewritten struct {
	Key string
	// Original is the SHA-256 of the value that was first written.
	Original blob.ID
}

// add takes the content of a row. The key of a row must match its content.
func (r *Result) add(row kv.Row) error {
	switch {
	case keyspace.Conversations().Contains(row.Key):
		var rec stetv1.ConversationRecord
		if err := proto.Unmarshal(row.Value, &rec); err != nil || keyspace.Conversation(rec.Id) != row.Key {
			return broken("row %q is not a conversation", row.Key)
		}
		r.Title = rec.Title
	case keyspace.AllSaves().Contains(row.Key):
		return r.addSave(row)
	case keyspace.Checkpoints().Contains(row.Key):
		return r.addCheckpoint(row)
	case keyspace.Operations().Contains(row.Key):
		var rec stetv1.OperationRecord
		if err := proto.Unmarshal(row.Value, &rec); err != nil || keyspace.Operation(rec.Seq) != row.Key {
			return broken("row %q is not an operation", row.Key)
		}
		r.Operations = append(r.Operations, Operation{rec.Seq, rec.Kind, rec.Description, time.UnixMilli(rec.TimeMs)})
		return r.rewritten(row.Key, rec.Original)
	default:
		return broken("row %q is not expected", row.Key)
	}
	return nil
}

func (r *Result) addSave(row kv.Row) error {
	var rec stetv1.SaveRecord
	if err := proto.Unmarshal(row.Value, &rec); err != nil || keyspace.Save(r.Conversation, rec.Seq) != row.Key {
		return broken("row %q is not a save of the conversation", row.Key)
	}
	root, err := blob.IDFromBytes(rec.Root)
	if err != nil {
		return broken("row %q: %v", row.Key, err)
	}
	next := uint64(1)
	if n := len(r.Saves); n > 0 {
		next = r.Saves[n-1].Seq + 1
	}
	if rec.Seq < next {
		return broken("row %q is not in order", row.Key)
	}
	for ; next < rec.Seq && len(r.RemovedSaves) < maxListed; next++ {
		r.RemovedSaves = append(r.RemovedSaves, next)
	}
	r.Saves = append(r.Saves, Save{rec.Seq, root, time.UnixMilli(rec.TimeMs)})
	return r.rewritten(row.Key, rec.Original)
}

// maxListed limits lists whose length a number in a proof decides.
const maxListed = 1 << 20

func (r *Result) addCheckpoint(row kv.Row) error {
	var rec stetv1.CheckpointRecord
	if err := proto.Unmarshal(row.Value, &rec); err != nil || keyspace.Checkpoint(rec.Id) != row.Key {
		return broken("row %q is not a checkpoint", row.Key)
	}
	if r.Conversation != "" && rec.Conversation != r.Conversation {
		return broken("row %q is not a checkpoint of the conversation", row.Key)
	}
	var tree blob.ID
	if len(rec.Tree) > 0 {
		var err error
		if tree, err = blob.IDFromBytes(rec.Tree); err != nil {
			return broken("row %q: %v", row.Key, err)
		}
	}
	name := fmt.Sprintf("c%d", rec.Number)
	if rec.Kind == stetv1.CheckpointKind_CHECKPOINT_KIND_IMPORT {
		name = fmt.Sprintf("i%d", rec.Number)
	}
	r.Checkpoints = append(r.Checkpoints, Checkpoint{rec.Id, name, rec.Workspace, time.UnixMilli(rec.TimeMs), tree})
	return r.rewritten(row.Key, rec.Original)
}

func (r *Result) rewritten(key string, original []byte) error {
	if len(original) == 0 {
		return nil
	}
	id, err := blob.IDFromBytes(original)
	if err != nil {
		return broken("row %q: %v", key, err)
	}
	r.Rewritten = append(r.Rewritten, Rewritten{key, id})
	return nil
}

// left counts the blobs that were named but not included.
func (r *Result) left(named *frontier, done map[blob.ID]bool) {
	for id, k := range named.kinds {
		switch {
		case done[id]:
		case r.Contents || k.form == node:
			r.missing++
		default:
			r.Hashes++
		}
	}
}
