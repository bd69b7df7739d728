package cursorimport_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
)

func TestImportOfSDKStores(t *testing.T) {
	for _, path := range []string{sdkWithState(t), linesWithState(t)} {
		src := cursortest.Open(t, path, nil)
		db, dst := cursortest.OpenDB(t)
		r := importAll(t, src, dst, nil)
		all := cursortest.Collect(t, src.All(t.Context()))
		if r.Conversations != 1 || len(all) != 1 || len(r.Skipped) != 0 {
			t.Fatalf("%s: result = %+v, want %d conversations", path, r, len(all))
		}
		c := all[0]
		info, err := db.Conversations().Get(t.Context(), c.ID)
		if err != nil || info.Root != c.State.ID {
			t.Errorf("%s: %s has root %s, %v; want %s", path, c.ID, info.Root.Short(), err, c.State.ID.Short())
		}
		for run, err := range src.Runs(t.Context(), c.ID) {
			if err != nil {
				t.Fatal(err)
			}
			if root, err := db.Conversations().MessageHead(t.Context(), c.ID, run.ID); err != nil || root != run.Latest {
				t.Errorf("%s: run %s has root %s, %v", path, run.ID, root.Short(), err)
			}
		}
		if text := jsonl(t, db, c.ID); !strings.Contains(text, `"text":"add a line"`) {
			t.Errorf("%s: transcript %s", path, text)
		}
		if n := len(sourceRows(t, dst, c.ID)); n < 2 {
			t.Errorf("%s: %d rows of runs and events", path, n)
		}
		sound(t, db, 0)
	}
}

func TestAgentWithoutReadableStateKeepsItsRuns(t *testing.T) {
	for _, path := range []string{"../testdata/sdk-store/sqlite", "../testdata/sdk-store/jsonl"} {
		src := cursortest.Open(t, path, nil)
		db, dst := cursortest.OpenDB(t)
		r := importAll(t, src, dst, nil)
		all := cursortest.Collect(t, src.All(t.Context()))
		if r.Conversations != len(all) || (r.Damaged() > 0) != (all[0].StateErr != nil) {
			t.Errorf("%s: result = %+v", path, r)
		}
		if n := len(sourceRows(t, dst, all[0].ID)); n < 2 {
			t.Errorf("%s: %d rows of runs and events", path, n)
		}
		sound(t, db, 0)
	}
}

func sourceRows(t testing.TB, dst cursorimport.Target, id string) []cursorimport.SourceRow {
	t.Helper()
	source, err := cursorimport.ReadSource(t.Context(), dst, id)
	if err != nil {
		t.Fatal(err)
	}
	return cursortest.Collect(t, source.Rows(t.Context()))
}

// sdkWithState makes an SDK store whose agent has the state of the editor's
// fixture.
func sdkWithState(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../testdata/sdk-store/sqlite")); err != nil {
		t.Fatal(err)
	}
	root := fixtureRoot(t)
	agent, err := sqlite3.Open(filepath.Join(dir, "agents", "agent-"+blob.Sum([]byte(cursortest.SDKAgent)).String(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	eachFixtureBlob(t, func(id blob.ID, data []byte) {
		cursortest.Run(t, agent, fmt.Sprintf("INSERT OR REPLACE INTO blobs VALUES ('%s', x'%x')", id, data))
	})
	agent.Close()
	ref := fmt.Sprintf(`{"blobId":"%s"}`, root)
	index := cursortest.Create(t, filepath.Join(dir, "index.db"), "UPDATE agents SET latest_checkpoint_ref_json = '"+ref+"';"+
		"UPDATE runs SET latest_checkpoint_ref_json = '"+ref+"'")
	index.Close()
	return dir
}

// linesWithState is the same as lines of JSON.
func linesWithState(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../testdata/sdk-store/jsonl")); err != nil {
		t.Fatal(err)
	}
	ref := fmt.Sprintf(`{"blobId":"%s"}`, fixtureRoot(t))
	var blobs strings.Builder
	eachFixtureBlob(t, func(id blob.ID, data []byte) {
		fmt.Fprintf(&blobs, `{"agentId":"a","blobId":"%s","dataBase64":"%s"}`+"\n", id, base64.StdEncoding.EncodeToString(data))
	})
	for name, text := range map[string]string{
		"checkpoints.ndjson": blobs.String(),
		"agents.ndjson":      `{"agentId":"a","cwd":"/w","createdAt":1700000000000,"latestCheckpoint":` + ref + "}\n",
		"runs.ndjson":        `{"runId":"r","agentId":"a","turnNumber":1,"latestCheckpointRef":` + ref + "}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func fixtureRoot(t testing.TB) blob.ID {
	t.Helper()
	data, err := hex.DecodeString(cursortest.ReadExpectation(t, "../testdata/expected.json").State)
	if err != nil {
		t.Fatal(err)
	}
	return blob.Sum(data)
}

func eachFixtureBlob(t testing.TB, fn func(blob.ID, []byte)) {
	t.Helper()
	blobs := cursortest.Open(t, "../testdata/state.vscdb", nil).Blobs()
	err := blobs.(blob.Lister).List(t.Context(), blob.ID{}, func(info blob.Info) error {
		data, err := blobs.Get(t.Context(), info.ID)
		if err == nil {
			fn(info.ID, data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
