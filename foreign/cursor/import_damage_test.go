package cursor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/internal/testenv"
)

// blobOf returns the id of a blob of the fixture by its kind.
func blobOf(t testing.TB, kind string) string {
	t.Helper()
	for id, b := range readExpectation(t).Blobs {
		if b.Kind == kind {
			return id
		}
	}
	t.Fatalf("no %s in the fixture", kind)
	return ""
}

func TestStateWithHolesStaysOutside(t *testing.T) {
	for name, change := range map[string]string{
		"missing": "DELETE FROM cursorDiskKV WHERE key = 'agentKv:blob:%s'",
		"deleted": "UPDATE cursorDiskKV SET value = NULL WHERE key = 'agentKv:blob:%s'",
		"changed": "UPDATE cursorDiskKV SET value = x'6162' WHERE key = 'agentKv:blob:%s'",
	} {
		t.Run(name, func(t *testing.T) {
			path := copyFile(t, "testdata/state.vscdb", "state.vscdb")
			create(t, path, fmt.Sprintf(change, blobOf(t, "ConversationStep.assistant"))).Close()
			db, dst := openDB(t)
			r := importAll(t, open(t, path, nil), dst, nil)
			why := reasons(r)
			// The state is lost, the messages are not: they make a state.
			if r.Conversations != 1 || r.Damaged() == 0 || !strings.Contains(why[current], "is incomplete") || !strings.Contains(why[legacy], "is incomplete") {
				t.Errorf("result = %+v", r)
			}
			text := jsonl(t, db, current)
			if !strings.Contains(text, `"add a line"`) || !strings.Contains(text, `"done"`) || strings.Contains(text, "orphan bubble") {
				t.Errorf("transcript = %s", text)
			}
			sound(t, db, 1e6)
			again := importAll(t, open(t, path, nil), dst, nil)
			if again.Conversations != 0 || again.Damaged() != r.Damaged() || !strings.Contains(reasons(again)[current], "already imported") {
				t.Errorf("second result = %+v", again)
			}
		})
	}
}

func TestRepairedSourceIsImportedAfterAll(t *testing.T) {
	path := copyFile(t, "testdata/state.vscdb", "state.vscdb")
	step := blobOf(t, "ConversationStep.assistant")
	other := create(t, path, "CREATE TABLE saved AS SELECT * FROM cursorDiskKV WHERE key = 'agentKv:blob:"+step+"';"+
		"DELETE FROM cursorDiskKV WHERE key = 'agentKv:blob:"+step+"'")
	db, dst := openDB(t)
	importAll(t, open(t, path, nil), dst, nil)
	run(t, other, "INSERT INTO cursorDiskKV SELECT * FROM saved; DROP TABLE saved")
	r := importAll(t, open(t, path, nil), dst, nil)
	info, err := db.Conversations().Get(t.Context(), current)
	if err != nil || r.Conversations != 2 || r.Damaged() != 0 || info.Root != fixtureRoot(t) {
		t.Errorf("result = %+v, root %s, %v", r, info.Root.Short(), err)
	}
	sound(t, db, 1e6)
}

func TestBrokenRowsDoNotStopTheRest(t *testing.T) {
	path := copyFile(t, "testdata/state.vscdb", "state.vscdb")
	db := create(t, path, "")
	insert(t, db, "composerData:broken", "{broken")
	insert(t, db, "composerData:ctrl\x01", "{}")
	insert(t, db, "composerData:empty", `{"_v": 16, "composerId": "empty"}`)
	insert(t, db, "checkpointId:"+current+":cp-bad", `{"files": [{"uri": "file:///w/a.txt", "originalModelDiffWrtV0": [{}]}]}`)
	insert(t, db, "agentKv:bubbleCheckpoint:"+current+":bad", "no id")
	insert(t, db, "bubbleId:"+current+":odd", "[]")
	insert(t, db, "bc-x:cloudAgent:metadata", "KAc=") // version 7
	db.Close()
	store, dst := openDB(t)
	r := importAll(t, open(t, path, nil), dst, nil)
	if r.Conversations != 2 || r.Checkpoints != 4 || r.Agents != 1 {
		t.Errorf("result = %+v", r)
	}
	why := reasons(r)
	for _, key := range []string{
		"broken", "ctrl\x01", "empty", "checkpointId:" + current + ":cp-bad", "agentKv:bubbleCheckpoint:" + current + ":bad",
		"bubbleId:" + current + ":odd", "bc-x:cloudAgent:metadata",
	} {
		if why[key] == "" {
			t.Errorf("nothing about %s in %v", key, why)
		}
	}
	for _, s := range r.Skipped {
		if s.Damage == (s.Key == "empty") {
			t.Errorf("skipped %+v", s)
		}
	}
	// What cannot be understood is kept all the same.
	kept := map[string]bool{}
	for _, row := range sourceRows(t, dst, current) {
		kept[row.Key] = true
	}
	if !kept["checkpointId:"+current+":cp-bad"] || !kept["bubbleId:"+current+":odd"] {
		t.Errorf("kept %v", kept)
	}
	sound(t, store, 0)
}

// TestDamagedFilesGiveSoundStores changes bytes of the file at random. Whatever
// can still be read makes a sound store, and the next import can go on with it.
func TestDamagedFilesGiveSoundStores(t *testing.T) {
	data, err := os.ReadFile("testdata/state.vscdb")
	if err != nil {
		t.Fatal(err)
	}
	partly := 0
	for seed := range testenv.Scale(60, 2000) {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		damaged := bytes.Clone(data)
		for range 1 + random.IntN(8) {
			damaged[100+random.IntN(len(damaged)-100)] ^= byte(1 + random.IntN(255))
		}
		if random.IntN(4) == 0 {
			damaged = damaged[:random.IntN(len(damaged))]
		}
		path := filepath.Join(t.TempDir(), "state.vscdb")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		src, err := cursor.Open(t.Context(), path, &cursor.Options{Rescue: true})
		if err != nil {
			continue
		}
		whole, _, _ := memory(-1, false)
		r, err := cursor.Import(t.Context(), src, whole, nil)
		if err != nil && (errors.Is(err, context.Canceled) || errors.Is(err, errKilled)) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err == nil && r.Damaged() > 0 && r.Conversations > 0 {
			partly++
		}
		src.Close()
		imported(t, whole)
	}
	if partly == 0 {
		t.Error("no file was imported in part; the test is hollow")
	}
}
