package checkpoint

import (
	"encoding/binary"
	"path/filepath"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/recall"
	"github.com/stet-dev/stet/workspace"
)

// recalled returns the store of results that this package and its readers keep in
// IndexDir.
func (s *Service) recalled() *recall.Store {
	return recall.New(filepath.Join(s.opts.IndexDir, recall.Name), s.opts.IndexSeal)
}

// Recall returns what Remember kept for a workspace under a name, or nil. It may be gone at
// any time.
func (s *Service) Recall(ws, name string) []byte {
	if s.opts.IndexDir == "" {
		return nil
	}
	return s.recalled().Get(ws + "\x00" + name)
}

// Remember keeps a result that a read model can recompute, if IndexDir is set and
// nothing fails. It must depend only on blobs and ids that the result names.
func (s *Service) Remember(ws, name string, result []byte) {
	if s.opts.IndexDir != "" {
		s.recalled().Put(ws+"\x00"+name, result)
	}
}

// manyTrees is how many trees are worth remembering: each takes some 12 µs to read.
const manyTrees = 256

// seenTrees is what trees have at a path. A tree is named by its hash, so this never becomes
// wrong, whatever happens to the checkpoints.
type seenTrees struct {
	at    map[blob.ID]*workspace.Entry // nil if there is nothing
	order []blob.ID                    // of the keys: neighbours have mostly the same entry
	read  int                          // of them, in this look
}

func (t *seenTrees) add(tree blob.ID, e *workspace.Entry) {
	t.at[tree] = e
	t.order = append(t.order, tree)
	t.read++
}

// seenAt recalls what is known about a path.
func (v *versions) seenAt(path string) *seenTrees {
	if t := v.seen[path]; t != nil {
		return t
	}
	var t *seenTrees
	if len(v.records) >= v.s.opts.manyTrees {
		t = decodeSeen(v.s.Recall(v.workspace(), treesAt+path), path[strings.LastIndexByte(path, '/')+1:])
	}
	if t == nil {
		t = &seenTrees{at: make(map[blob.ID]*workspace.Entry)}
	}
	if v.seen == nil {
		v.seen = make(map[string]*seenTrees)
	}
	v.seen[path] = t
	return t
}

func (v *versions) workspace() string { return v.records[len(v.records)-1].Workspace }

const treesAt = "trees\x00"

// remember keeps what was read, without trees that no longer have a checkpoint.
func (v *versions) remember() {
	var kept map[blob.ID]bool
	for path, t := range v.seen {
		if t.read < v.s.opts.manyTrees {
			continue
		}
		if len(t.order) > 2*len(v.records) { // most are of forgotten checkpoints, or of later ones
			if kept == nil {
				kept = make(map[blob.ID]bool, len(v.records))
				for _, rec := range v.records {
					kept[rec.Tree] = true
				}
			}
			order := t.order
			t.order = nil
			for _, tree := range order {
				if kept[tree] {
					t.order = append(t.order, tree)
				}
			}
		}
		v.s.Remember(v.workspace(), treesAt+path, t.encode())
	}
}

// seenVersion is the first byte of the result.
const seenVersion = 1

// encode writes runs of trees that have the same entry:
//
//	version, then for each run: kind (0: nothing), and for an entry: chunked, mode, size, id;
//	then how many trees, and their ids
//
// Numbers are uvarints.
func (t *seenTrees) encode() []byte {
	out := []byte{seenVersion}
	for i := 0; i < len(t.order); {
		e, end := t.at[t.order[i]], i+1
		for end < len(t.order) && sameEntry(t.at[t.order[end]], e) {
			end++
		}
		if e == nil {
			out = append(out, 0)
		} else {
			chunked := byte(0)
			if e.Chunked {
				chunked = 1
			}
			out = append(out, byte(e.Kind), chunked)
			out = binary.AppendUvarint(out, uint64(e.Mode))
			out = binary.AppendUvarint(out, uint64(e.Size))
			out = append(out, e.ID[:]...)
		}
		out = binary.AppendUvarint(out, uint64(end-i))
		for ; i < end; i++ {
			out = append(out, t.order[i][:]...)
		}
	}
	return out
}

func sameEntry(a, b *workspace.Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Same(*b)
}

// decodeSeen reads what encode wrote; nil if it cannot be read.
func decodeSeen(data []byte, name string) *seenTrees {
	if len(data) == 0 || data[0] != seenVersion {
		return nil
	}
	t := &seenTrees{at: make(map[blob.ID]*workspace.Entry, len(data)/blob.IDSize)}
	r := recall.Read(data[1:])
	for r.Len() > 0 {
		var e *workspace.Entry
		if kind := r.Byte(); kind != 0 {
			e = &workspace.Entry{Name: name, Kind: workspace.Kind(kind), Chunked: r.Byte() == 1, Mode: uint32(r.Number()), Size: int64(r.Number()), ID: blob.ID(r.Bytes(blob.IDSize))}
		}
		for range r.Count(blob.IDSize) {
			tree := blob.ID(r.Bytes(blob.IDSize))
			t.at[tree] = e
			t.order = append(t.order, tree)
		}
	}
	if r.Bad() {
		return nil
	}
	return t
}
