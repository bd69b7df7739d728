package cursor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
	"github.com/stet-dev/stet/internal/testenv"
)

func TestFilesThatAreNoStore(t *testing.T) {
	sound, err := os.ReadFile("testdata/state.vscdb")
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 8192)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	change := func(at int, b ...byte) []byte {
		out := append([]byte(nil), sound...)
		copy(out[at:], b)
		return out
	}
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"empty", nil, cursor.ErrNotDatabase},
		{"text", []byte("hello, this is no database at all\n"), cursor.ErrNotDatabase},
		{"noise", noise, cursor.ErrEncrypted},
		{"compressed", append([]byte("\x1f\x8b\x08"), noise[3:]...), cursor.ErrNotDatabase},
		{"ten bytes of the header", sound[:10], cursor.ErrTruncated},
		{"half of the header", sound[:50], cursor.ErrTruncated},
		{"half of the file", sound[:len(sound)/2], cursor.ErrTruncated},
		{"odd page size", change(16, 0x12, 0x34), cursor.ErrCorrupt},
		{"UTF-16", change(56, 0, 0, 0, 2), cursor.ErrUnsupported},
		{"schema overwritten", change(100, noise[:3000]...), cursor.ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.vscdb")
			if err := os.WriteFile(path, tt.data, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := cursor.Open(t.Context(), path, nil); !errors.Is(err, tt.want) {
				t.Errorf("Open = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestPlacesThatAreNoStore(t *testing.T) {
	dir := t.TempDir()
	if _, err := cursor.Open(t.Context(), dir, nil); !errors.Is(err, cursor.ErrMissingTable) {
		t.Errorf("empty directory: %v", err)
	}
	if _, err := cursor.Open(t.Context(), filepath.Join(dir, "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	other := filepath.Join(dir, "other.db")
	cursortest.Create(t, other, "CREATE TABLE t (x); CREATE VIEW cursorDiskKV AS SELECT x AS key, x AS value FROM t").Close()
	if _, err := cursor.Open(t.Context(), other, nil); !errors.Is(err, cursor.ErrMissingTable) {
		t.Errorf("database of something else: %v", err)
	}
}

func TestStoreWithoutTheEditorsTableIsEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, "CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
	cursortest.Run(t, db, `INSERT INTO ItemTable VALUES
		('composer.composerData', '{"allComposers": [{"composerId": "c2", "name": "two"}, {"composerId": "c1", "createdAt": 1700000000000}, 7]}'),
		('composer.composerHeaders', 'not json'), ('secret.token', '{"allComposers": [{"composerId": "stolen"}]}')`)
	s := cursortest.Open(t, path, nil)
	headers := cursortest.Collect(t, s.Conversations(t.Context()))
	if len(headers) != 2 || headers[0].ID != "c1" || headers[1].Title != "two" || !headers[0].Missing {
		t.Errorf("headers = %+v", headers)
	}
	if _, err := s.Blobs().Get(t.Context(), blob.Sum(nil)); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get = %v", err)
	}
	if r, err := s.Verify(t.Context(), nil); err != nil || !r.OK() {
		t.Errorf("Verify = %+v, %v", r, err)
	}
}

// TestDamagedFilesNeverGiveOtherBytes cuts and flips copies of the fixture and
// reads everything that can be read. A blob is right or an error.
func TestDamagedFilesNeverGiveOtherBytes(t *testing.T) {
	sound, err := os.ReadFile("testdata/state.vscdb")
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(testenv.Scale(1, 2))
	rng := rand.New(rand.NewPCG(seed, 7))
	path := filepath.Join(t.TempDir(), "state.vscdb")
	var ids []blob.ID
	for text := range cursortest.ReadExpectation(t, "testdata/expected.json").Blobs {
		id, err := blob.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	var opened, whole int
	for i := range testenv.Scale(300, 20_000) {
		data := append([]byte(nil), sound...)
		switch i % 3 {
		case 0:
			data = data[:rng.IntN(len(data))]
		case 1:
			data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
		case 2:
			clear(data[rng.IntN(len(data)/4096)*4096:][:4096])
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		ok, all := readDamaged(t, path, ids)
		if ok {
			opened++
		}
		if all {
			whole++
		}
	}
	t.Logf("%d opened, %d of them read to the end without an error", opened, whole)
	if opened == 0 || whole == opened {
		t.Errorf("%d opened, %d whole: the damage was not met", opened, whole)
	}
}

// readDamaged reads all there is, and reports whether the store opened and
// whether no error was met.
func readDamaged(t *testing.T, path string, ids []blob.ID) (opened, whole bool) {
	ctx := t.Context()
	s, err := cursor.Open(ctx, path, &cursor.Options{Rescue: true})
	if err != nil {
		return false, false
	}
	defer s.Close()
	whole = true
	met := func(err error) {
		if err != nil {
			whole = false
		}
	}
	for _, id := range ids {
		data, err := s.Blobs().Get(ctx, id)
		if err == nil && blob.Sum(data) != id {
			t.Errorf("blob %s has other bytes", id)
		}
		met(err)
	}
	met(readEverything(ctx, s))
	r, err := s.Verify(ctx, nil)
	met(err)
	if r.CorruptCount+r.DanglingCount > 0 {
		whole = false
	}
	return true, whole
}

func readEverything(ctx context.Context, s *cursor.Store) error {
	var errs []error
	for conv, err := range s.All(ctx) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		errs = append(errs, conv.StateErr)
		errs = append(errs, conv.Problems...)
		for m, err := range s.Messages(ctx, conv) {
			errs = append(errs, err, m.Problem)
		}
		for id, err := range s.Checkpoints(ctx, conv) {
			errs = append(errs, err)
			if err == nil {
				_, err = s.Checkpoint(ctx, conv, id)
				errs = append(errs, err)
			}
		}
	}
	for agent, err := range s.CloudAgents(ctx) {
		errs = append(errs, err, agent.Problem)
	}
	_, err := s.Measure(ctx)
	return errors.Join(append(errs, err)...)
}

func TestVerifyNamesWhatIsWrong(t *testing.T) {
	path := cursortest.Copy(t, "testdata/state.vscdb", "state.vscdb")
	db := cursortest.Create(t, path, "")
	const (
		step   = "a5791e8fd90b1d1a088e1b0ec645e3dc1f42fbf0834e2cafecb822f3ca119f13" // a step of a turn
		prompt = "d1088139c29ae926365224316aae7bcc79b6bb8c4f34b57e9943b5e3e0312bcb"
		todo   = "94473b458dd33564a031563a60db8062c15ee480e0d3d3ffb22c706c821c5e74"
	)
	cursortest.Run(t, db, fmt.Sprintf("DELETE FROM cursorDiskKV WHERE key = 'agentKv:blob:%s'", step))
	cursortest.Run(t, db, fmt.Sprintf("UPDATE cursorDiskKV SET value = NULL WHERE key = 'agentKv:blob:%s'", todo))
	cursortest.Run(t, db, fmt.Sprintf("UPDATE cursorDiskKV SET value = x'00' WHERE key = 'agentKv:blob:%s'", prompt))
	cursortest.Insert(t, db, "agentKv:checkpoint:x", "not an id")
	cursortest.Insert(t, db, "composerData:x", "{broken")
	cursortest.Insert(t, db, "bubbleId:x:y", `{"conversationState": "~!"}`)
	cursortest.Insert(t, db, "bc-x:cloudAgent:metadata", "KAc=") // version 7
	cursortest.Insert(t, db, "agentKv:blob:short", []byte("x"))
	db.Close()
	r, err := cursortest.Open(t, path, nil).Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]bool{}
	for _, f := range r.Corrupt {
		where[f.Where] = true
	}
	for _, want := range []string{"blob", "agentKv:checkpoint:x", "composerData:x", "bubbleId:x:y", "bc-x:cloudAgent:metadata", "agentKv:blob:short"} {
		if !where[want] {
			t.Errorf("nothing about %s in %+v", want, r.Corrupt)
		}
	}
	dangling := map[string]string{}
	for _, f := range r.Dangling {
		dangling[f.ID.String()] = f.Field
	}
	if dangling[step] != "agent_conversation_turn.steps" || !strings.HasSuffix(dangling[todo], "todos") {
		t.Errorf("dangling = %v", dangling)
	}
	if r.OK() || r.Tombstones != 1 || r.CorruptCount != int64(len(r.Corrupt)) {
		t.Errorf("report = %+v", r)
	}
	limited, err := cursortest.Open(t, path, nil).Verify(t.Context(), &cursor.VerifyOptions{MaxListed: 1})
	if err != nil || len(limited.Corrupt) != 1 || limited.CorruptCount != r.CorruptCount {
		t.Errorf("limited report = %+v, %v", limited, err)
	}
}

func TestFormerRootsAreFound(t *testing.T) {
	path := cursortest.Copy(t, "testdata/state.vscdb", "state.vscdb")
	db := cursortest.Create(t, path, "")
	prompt, err := blob.ParseID("d1088139c29ae926365224316aae7bcc79b6bb8c4f34b57e9943b5e3e0312bcb")
	if err != nil {
		t.Fatal(err)
	}
	former := blob.New(append([]byte{0x0a, 0x20}, prompt.Bytes()...))
	cursortest.Insert(t, db, "agentKv:blob:"+former.ID.String(), former.Data)
	db.Close()
	r, err := cursortest.Open(t, path, nil).Verify(t.Context(), nil)
	if err != nil || len(r.FormerRoots) != 1 || r.FormerRoots[0] != former.ID || r.OrphanCount != 2 {
		t.Errorf("report = %+v, %v", r, err)
	}
}
