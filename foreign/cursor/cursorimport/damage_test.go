package cursorimport_test

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
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
	"github.com/stet-dev/stet/internal/testenv"
)

// blobOf returns the id of a blob of the fixture by its kind.
func blobOf(t testing.TB, kind string) string {
	t.Helper()
	for id, b := range cursortest.ReadExpectation(t, "../testdata/expected.json").Blobs {
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
			path := cursortest.Copy(t, "../testdata/state.vscdb", "state.vscdb")
			cursortest.Create(t, path, fmt.Sprintf(change, blobOf(t, "ConversationStep.assistant"))).Close()
			db, dst := cursortest.OpenDB(t)
			r := importAll(t, cursortest.Open(t, path, nil), dst, nil)
			why := reasons(r)
			// The state is lost, the messages are not: they make a state.
			if r.Conversations != 1 || r.Damaged() == 0 || !strings.Contains(why[cursortest.Current], "is incomplete") || !strings.Contains(why[cursortest.Legacy], "is incomplete") {
				t.Errorf("result = %+v", r)
			}
			text := jsonl(t, db, cursortest.Current)
			if !strings.Contains(text, `"add a line"`) || !strings.Contains(text, `"done"`) || strings.Contains(text, "orphan bubble") {
				t.Errorf("transcript = %s", text)
			}
			sound(t, db, 1e6)
			again := importAll(t, cursortest.Open(t, path, nil), dst, nil)
			if again.Conversations != 0 || again.Damaged() != r.Damaged() || !strings.Contains(reasons(again)[cursortest.Current], "already imported") {
				t.Errorf("second result = %+v", again)
			}
		})
	}
}

func TestRepairedSourceIsImportedAfterAll(t *testing.T) {
	path := cursortest.Copy(t, "../testdata/state.vscdb", "state.vscdb")
	step := blobOf(t, "ConversationStep.assistant")
	other := cursortest.Create(t, path, "CREATE TABLE saved AS SELECT * FROM cursorDiskKV WHERE key = 'agentKv:blob:"+step+"';"+
		"DELETE FROM cursorDiskKV WHERE key = 'agentKv:blob:"+step+"'")
	db, dst := cursortest.OpenDB(t)
	importAll(t, cursortest.Open(t, path, nil), dst, nil)
	cursortest.Run(t, other, "INSERT INTO cursorDiskKV SELECT * FROM saved; DROP TABLE saved")
	r := importAll(t, cursortest.Open(t, path, nil), dst, nil)
	info, err := db.Conversations().Get(t.Context(), cursortest.Current)
	if err != nil || r.Conversations != 2 || r.Damaged() != 0 || info.Root != fixtureRoot(t) {
		t.Errorf("result = %+v, root %s, %v", r, info.Root.Short(), err)
	}
	sound(t, db, 1e6)
}

func TestBrokenRowsDoNotStopTheRest(t *testing.T) {
	path := cursortest.Copy(t, "../testdata/state.vscdb", "state.vscdb")
	db := cursortest.Create(t, path, "")
	cursortest.Insert(t, db, "composerData:broken", "{broken")
	cursortest.Insert(t, db, "composerData:ctrl\x01", "{}")
	cursortest.Insert(t, db, "composerData:empty", `{"_v": 16, "composerId": "empty"}`)
	cursortest.Insert(t, db, "checkpointId:"+cursortest.Current+":cp-bad", `{"files": [{"uri": "file:///w/a.txt", "originalModelDiffWrtV0": [{}]}]}`)
	cursortest.Insert(t, db, "agentKv:bubbleCheckpoint:"+cursortest.Current+":bad", "no id")
	cursortest.Insert(t, db, "bubbleId:"+cursortest.Current+":odd", "[]")
	cursortest.Insert(t, db, "bc-x:cloudAgent:metadata", "KAc=") // version 7
	db.Close()
	store, dst := cursortest.OpenDB(t)
	r := importAll(t, cursortest.Open(t, path, nil), dst, nil)
	if r.Conversations != 2 || r.Checkpoints != 4 || r.Agents != 1 {
		t.Errorf("result = %+v", r)
	}
	why := reasons(r)
	for _, key := range []string{
		"broken", "ctrl\x01", "empty", "checkpointId:" + cursortest.Current + ":cp-bad", "agentKv:bubbleCheckpoint:" + cursortest.Current + ":bad",
		"bubbleId:" + cursortest.Current + ":odd", "bc-x:cloudAgent:metadata",
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
	for _, row := range sourceRows(t, dst, cursortest.Current) {
		kept[row.Key] = true
	}
	if !kept["checkpointId:"+cursortest.Current+":cp-bad"] || !kept["bubbleId:"+cursortest.Current+":odd"] {
		t.Errorf("kept %v", kept)
	}
	sound(t, store, 0)
}

// TestDamagedFilesGiveSoundStores changes bytes of the file at random. Whatever
// can still be read makes a sound store, and the next import can go on with it.
func TestDamagedFilesGiveSoundStores(t *testing.T) {
	data, err := os.ReadFile("../testdata/state.vscdb")
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
		r, err := cursorimport.Import(t.Context(), src, whole, nil)
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
