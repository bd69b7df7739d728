package checkpoint

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// The journal of format 1, spelled by hand: a release must recover what an earlier one
// wrote, so neither its fields nor their numbers may follow the code.
type oldStep struct {
	kind uint64 // 1 removes, 2 swaps, 3 installs, 4 changes the mode
	path string
	slot uint64
	// of what was staged
	inode, size, mtime uint64
	dir                bool
	oldMode, newMode   uint64
}

func (s *oldStep) staged(t *testing.T, path string) {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	s.inode, s.size, s.mtime = testenv.Inode(t, path), uint64(info.Size()), uint64(info.ModTime().UnixNano())
	s.dir = info.IsDir()
}

func oldNumber(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func oldBytes(b []byte, field protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func oldSteps(steps []oldStep) []byte {
	var out []byte
	for _, s := range steps {
		b := oldNumber(nil, 1, s.kind)
		b = oldBytes(b, 2, s.path)
		b = oldNumber(b, 3, s.slot)
		b = oldNumber(b, 4, s.inode)
		b = oldNumber(b, 5, s.size)
		b = oldNumber(b, 6, s.mtime)
		if s.dir {
			b = oldNumber(b, 7, 1)
		}
		b = oldNumber(b, 8, s.oldMode)
		b = oldNumber(b, 9, s.newMode)
		out = oldBytes(out, 1, string(b))
	}
	return out
}

func oldJournal(ws, stage string, steps blob.ID, saved string, ms int64) []byte {
	b := oldNumber(nil, 1, 1)
	b = oldBytes(b, 2, ws)
	b = oldBytes(b, 3, stage)
	b = oldBytes(b, 4, string(steps.Bytes()))
	b = oldBytes(b, 5, saved)
	return oldNumber(b, 6, uint64(ms))
}

// A rewind writes the journal that earlier releases wrote and read.
func TestJournalIsWrittenAsBefore(t *testing.T) {
	f := killedAfterSteps(t)
	ws := WorkspaceID(f.dir)
	row, err := f.rows.Get(t.Context(), keyspace.Journal(ws))
	must(t, err)
	rec, err := readJournal(row)
	must(t, err)
	steps := []oldStep{
		{kind: 1, path: "d/made", slot: 0},
		{kind: 1, path: "d", slot: 1},
		{kind: 2, path: "a", slot: 2},
		{kind: 2, path: "b", slot: 3},
		{kind: 3, path: "c", slot: 4},
	}
	for i := 2; i < len(steps); i++ { // they took their places
		steps[i].staged(t, f.path(steps[i].path))
	}
	list := blob.New(oldSteps(steps))
	got, err := f.blobs.Get(t.Context(), list.ID)
	if err != nil || !bytes.Equal(got, list.Data) {
		t.Errorf("the steps are not stored as %x: %v", list.Data, err)
	}
	if want := oldJournal(ws, string(rec.Stage), list.ID, rec.Saved, rec.TimeMs); !bytes.Equal(row.Value, want) {
		t.Errorf("the journal is\n%x, want\n%x", row.Value, want)
	}
}

// A rewind that an earlier release began is taken back from its journal.
func TestJournalOfAnEarlierRelease(t *testing.T) {
	f := newFixture(t)
	f.write("swapped", "present\n", "removed", "present\n", "dir/x", "x\n")
	must(t, os.Chmod(f.path("dir"), 0o755))
	saved := f.save(Request{})
	want := testenv.Snapshot(t, f.dir)
	st, err := f.w.load(t.Context())
	must(t, err)

	stage := workspace.StagePrefix + hex.EncodeToString(st.row.Nonce) + "-0102030405ff"
	must(t, os.Mkdir(f.path(stage), 0o700))
	in := func(slot string) string { return f.path(stage + "/" + slot) }
	steps := []oldStep{
		{kind: 1, path: "removed", slot: 0},
		{kind: 2, path: "swapped", slot: 1},
		{kind: 3, path: "made", slot: 2},
		{kind: 3, path: "made/file", slot: 3},
		{kind: 3, path: "not yet", slot: 4},
		{kind: 4, path: "dir", slot: 5, oldMode: 0o755, newMode: 0o700},
	}
	must(t, os.Rename(f.path("removed"), in("o0")))
	must(t, os.Rename(f.path("swapped"), in("n1")))
	f.write("swapped", "target\n")
	steps[1].staged(t, f.path("swapped"))
	must(t, os.Mkdir(f.path("made"), 0o755))
	steps[2].staged(t, f.path("made"))
	f.write("made/file", "target\n")
	steps[3].staged(t, f.path("made/file"))
	must(t, os.WriteFile(in("n4"), []byte("target\n"), 0o644))
	steps[4].staged(t, in("n4"))
	must(t, os.Chmod(f.path("dir"), 0o700))

	list := blob.New(oldSteps(steps))
	must(t, f.blobs.Put(t.Context(), list))
	journal := oldJournal(f.w.ID(), stage, list.ID, saved.ID, 1_700_000_000_123)
	must(t, f.rows.Commit(t.Context(), &kv.Batch{
		Set:  []kv.Set{{Key: keyspace.Journal(f.w.ID()), Value: journal}},
		Refs: []blob.ID{list.ID},
	}))
	f.reopen()
	r := f.w.Recovered()
	if r == nil || len(r.Left) > 0 || r.CleanupError != nil {
		t.Fatalf("recovered %+v", r)
	}
	if got, want := fmt.Sprint(r.Steps, r.Saved, r.Started.UnixMilli()), fmt.Sprint(len(steps), saved.ID, 1_700_000_000_123); got != want {
		t.Errorf("recovered %s, want %s", got, want)
	}
	f.expect(want)
}
