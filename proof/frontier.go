package proof

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// kind is the kind of a blob, as known from the reference to it.
type kind struct {
	form form
	part graph.Kind // of a conversation
}

type form uint8

const (
	content form = iota // names nothing
	node                // a directory
	chunks              // a list of chunks
	state               // a part of a conversation
)

// frontier holds the blobs that rows and blobs have named. Writer and verifier fill
// it in the same order, so both see each blob as the same kind.
type frontier struct {
	kinds   map[blob.ID]kind
	waiting []blob.ID // in the order of the first mention
}

func newFrontier() *frontier { return &frontier{kinds: make(map[blob.ID]kind)} }

func (f *frontier) add(id blob.ID, k kind) {
	if id.IsZero() {
		return
	}
	if _, ok := f.kinds[id]; !ok {
		f.kinds[id] = k
		f.waiting = append(f.waiting, id)
	}
}

func (f *frontier) addBytes(id []byte, k kind) error {
	if len(id) == 0 {
		return nil
	}
	parsed, err := blob.IDFromBytes(id)
	f.add(parsed, k)
	return err
}

// row adds what a row names. Rows name contents in any proof, whether or not the
// proof includes the contents.
func (f *frontier) row(row kv.Row) error {
	var err error
	switch {
	case keyspace.Checkpoints().Contains(row.Key):
		var rec stetv1.CheckpointRecord
		if err = proto.Unmarshal(row.Value, &rec); err == nil {
			err = f.checkpoint(&rec)
		}
	case keyspace.AllSaves().Contains(row.Key):
		var rec stetv1.SaveRecord
		if err = proto.Unmarshal(row.Value, &rec); err == nil {
			err = f.addBytes(rec.Root, kind{state, graph.State})
		}
	case keyspace.Operations().Contains(row.Key):
		var rec stetv1.OperationRecord
		if err = proto.Unmarshal(row.Value, &rec); err == nil {
			err = f.addBytes(rec.Paths, kind{})
		}
	}
	if err != nil {
		return fmt.Errorf("row %q: %w", row.Key, err)
	}
	return nil
}

func (f *frontier) checkpoint(rec *stetv1.CheckpointRecord) error {
	if err := f.addBytes(rec.Tree, kind{form: node}); err != nil {
		return err
	}
	if err := f.addBytes(rec.Root, kind{state, graph.State}); err != nil {
		return err
	}
	return f.addBytes(rec.NotCaptured, kind{})
}

// blob adds what a blob names. A malformed part of a conversation names what can be
// read of it.
func (f *frontier) blob(k kind, data []byte) error {
	switch k.form {
	case node:
		entries, err := workspace.DecodeNode(data)
		for _, e := range entries {
			f.add(e.ID, kindOf(e))
		}
		return err
	case chunks:
		list, err := workspace.DecodeChunks(data)
		for _, c := range list {
			f.add(c.ID, kind{})
		}
		return err
	case state:
		refs, _ := graph.Refs(k.part, data)
		for _, r := range refs {
			f.add(r.ID, kind{state, r.Kind})
		}
	}
	return nil
}

func kindOf(e workspace.Entry) kind {
	switch {
	case e.Kind == workspace.Dir:
		return kind{form: node}
	case e.Chunked:
		return kind{form: chunks}
	}
	return kind{}
}
