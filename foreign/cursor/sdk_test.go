package cursor_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
)

const agentKey = "86c80a12ea59abd1a4373ffadd89d10030feefbed85e1f7cd424ac7f39153824"

var sdkStoreDB = filepath.Join("testdata/sdk-store/sqlite/agents", "agent-"+blob.Sum([]byte(cursortest.SDKAgent)).String(), "store.db")

func TestSDKStore(t *testing.T) {
	s := cursortest.Open(t, "testdata/sdk-store/sqlite", nil)
	if s.Kind() != cursor.KindSDK {
		t.Fatalf("kind = %v", s.Kind())
	}
	headers := cursortest.Collect(t, s.Conversations(t.Context()))
	want := []cursor.Header{{
		ID: cursortest.SDKAgent, Title: "probe", Workspace: "/w/project",
		Created: time.Date(2026, 11, 15, 0, 15, 34, 461e6, time.UTC),
		Updated: time.Date(2026, 11, 15, 0, 15, 34, 462e6, time.UTC),
	}}
	if d := cmp.Diff(want, headers); d != "" {
		t.Error(d)
	}
	runs := cursortest.Collect(t, s.Runs(t.Context(), cursortest.SDKAgent))
	if len(runs) != 1 || runs[0].ID != "run-1" || runs[0].Status != "RUNNING" || runs[0].Turn != 1 {
		t.Errorf("runs = %+v", runs)
	}
	events := cursortest.Collect(t, s.Events(t.Context(), "run-1", 0))
	if len(events) != 2 || events[1].Seq != 2 || string(events[1].Payload) != `{"i":1}` {
		t.Errorf("events = %+v", events)
	}
	if later := cursortest.Collect(t, s.Events(t.Context(), "run-1", 1)); len(later) != 1 || later[0].Seq != 2 {
		t.Errorf("events after 1 = %+v", later)
	}
	c := conversation(t, s, cursortest.SDKAgent)
	// The probe's checkpoint is a message, not a state.
	if c.State != nil || !errors.Is(c.StateErr, cursor.ErrDataLoss) || !strings.Contains(c.StateErr.Error(), "latest_checkpoint_ref_json") {
		t.Errorf("state = %v, %v", c.State, c.StateErr)
	}
	if _, err := s.Conversation(t.Context(), "zz"); !errors.Is(err, cursor.ErrNotFound) {
		t.Errorf("missing agent: %v", err)
	}
}

func TestSDKBlobs(t *testing.T) {
	zero := blob.ID{}
	good := blob.Sum([]byte(`{"role":"user","content":"hello"}`))
	for _, path := range []string{"testdata/sdk-store/sqlite", sdkStoreDB} {
		b := cursortest.Open(t, path, nil).Blobs()
		if data, err := b.Get(t.Context(), good); err != nil || string(data) != `{"role":"user","content":"hello"}` {
			t.Errorf("%s: Get = %q, %v", path, data, err)
		}
		if data, err := b.Get(t.Context(), blob.Sum(nil)); err != nil || len(data) != 0 {
			t.Errorf("%s: empty blob = %q, %v", path, data, err)
		}
		// The reference takes any bytes under any id; we do not give them out.
		if _, err := b.Get(t.Context(), zero); !errors.Is(err, blob.ErrCorrupt) || !errors.Is(err, cursor.ErrDataLoss) {
			t.Errorf("%s: blob under a false id: %v", path, err)
		}
		has, err := b.Has(t.Context(), good, blob.Sum([]byte("absent")))
		if err != nil || !has[0] || has[1] {
			t.Errorf("%s: Has = %v, %v", path, has, err)
		}
		var n int
		err = b.(blob.Lister).List(t.Context(), blob.ID{}, func(blob.Info) error { n++; return nil })
		if err != nil || n != 2 {
			t.Errorf("%s: listed %d, %v; want 2", path, n, err)
		}
	}
}

func TestUnionListsEachBlobOnce(t *testing.T) {
	dir := t.TempDir()
	cursortest.Create(t, filepath.Join(dir, "index.db"), "CREATE TABLE agents (agent_id TEXT)").Close()
	want := map[blob.ID]bool{}
	for a := range 3 {
		sub := filepath.Join(dir, "agents", fmt.Sprintf("agent-%d", a))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		db := cursortest.Create(t, filepath.Join(sub, "store.db"), agentSchema)
		for i := a; i < a+5; i++ {
			b := blob.New(fmt.Appendf(nil, "blob %d", i))
			want[b.ID] = true
			cursortest.Run(t, db, fmt.Sprintf("INSERT INTO blobs VALUES ('%s', x'%x')", b.ID, b.Data))
		}
		db.Close()
	}
	var last blob.ID
	err := cursortest.Open(t, dir, nil).Blobs().(blob.Lister).List(t.Context(), blob.ID{}, func(info blob.Info) error {
		if info.ID.Compare(last) <= 0 || !want[info.ID] {
			t.Errorf("%s is out of order or unknown", info.ID)
		}
		last = info.ID
		delete(want, info.ID)
		return nil
	})
	if err != nil || len(want) != 0 {
		t.Errorf("%d blobs not listed, %v", len(want), err)
	}
}

func TestLineStore(t *testing.T) {
	s := cursortest.Open(t, "testdata/sdk-store/jsonl", nil)
	headers := cursortest.Collect(t, s.Conversations(t.Context()))
	at := time.UnixMilli(1700000000000).UTC()
	if d := cmp.Diff([]cursor.Header{{ID: "a", Workspace: "/w", Created: at, Updated: at}}, headers); d != "" {
		t.Error(d)
	}
	if runs := cursortest.Collect(t, s.Runs(t.Context(), "a")); len(runs) != 1 || runs[0].ID != "r" {
		t.Errorf("runs = %+v", runs)
	}
	events := cursortest.Collect(t, s.Events(t.Context(), "r", 0))
	if len(events) != 1 || string(events[0].Payload) != `{"x":1}` || events[0].Created.Year() != 2026 {
		t.Errorf("events = %+v", events)
	}
	wrong, err := blob.ParseID(strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Blobs().Get(t.Context(), wrong); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("blob under a false id: %v", err)
	}
	r, err := s.Verify(t.Context(), nil)
	if err != nil || r.CorruptCount != 1 {
		t.Errorf("Verify = %+v, %v", r, err)
	}
}

func TestLineStoreIgnoresALineThatWasCutOff(t *testing.T) {
	dir := t.TempDir()
	lines := `{"agentId":"a","name":"first"}` + "\n" + `{"agentId":"a","name":"second"}` + "\n" + `{"agentId":"b","na`
	if err := os.WriteFile(filepath.Join(dir, "agents.ndjson"), []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	headers := cursortest.Collect(t, cursortest.Open(t, dir, nil).Conversations(t.Context()))
	if len(headers) != 1 || headers[0].Title != "second" {
		t.Errorf("headers = %+v, want the second line of a", headers)
	}
}

func TestAgentStoreKeepsItsSecret(t *testing.T) {
	s := cursortest.Open(t, sdkStoreDB, nil)
	if s.Kind() != cursor.KindAgent {
		t.Fatalf("kind = %v", s.Kind())
	}
	meta, err := s.Agent(t.Context())
	if err != nil || meta.AgentID != cursortest.SDKAgent || meta.Mode != "default" || meta.Key.Reveal() != agentKey {
		t.Fatalf("Agent = %+v, %v", meta, err)
	}
	encoded, err := json.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	conv := conversation(t, s, cursortest.SDKAgent)
	shown := []string{
		string(encoded), fmt.Sprint(meta), fmt.Sprintf("%+v %#v %s %q %x %d", meta, meta, meta.Key, meta.Key, meta.Key, meta.Key),
		fmt.Sprintf("%#v", conv), fmt.Sprint(meta.Key), fmt.Sprintf("%v", &meta),
	}
	for _, text := range shown {
		if strings.Contains(text, agentKey) || strings.Contains(text, hex.EncodeToString([]byte(agentKey))) {
			t.Errorf("the key shows in %s", text)
		}
	}
}

func TestErrorsDoNotQuoteTheAgentRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db := cursortest.Create(t, path, agentSchema)
	cursortest.Run(t, db, `INSERT INTO meta VALUES ('0', '{"blobEncryptionKey": "hunter2", oops')`)
	db.Close()
	_, err := cursortest.Open(t, path, nil).Agent(t.Context())
	if !errors.Is(err, cursor.ErrMalformed) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("err = %v, want ErrMalformed without the key", err)
	}
}

func TestSealedBlobsOpenWithTheAgentsKey(t *testing.T) {
	data, err := os.ReadFile("testdata/encrypted_blob_vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "store.db")
	db := cursortest.Create(t, path, agentSchema)
	cursortest.Run(t, db, `INSERT INTO meta VALUES ('0', '{"agentId":"a","blobEncryptionKey":"test-key"}')`)
	var plains []string
	for line := range strings.Lines(string(data)) {
		var v struct{ KeyStr, Plaintext, Stored string }
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		cursortest.Run(t, db, fmt.Sprintf("INSERT INTO blobs VALUES ('%s', x'%s')", blob.Sum([]byte(v.Plaintext)), v.Stored))
		plains = append(plains, v.Plaintext)
	}
	db.Close()
	s := cursortest.Open(t, path, nil)
	for _, plain := range plains {
		got, err := s.Blobs().Get(t.Context(), blob.Sum([]byte(plain)))
		if err != nil || string(got) != plain {
			t.Errorf("Get = %q, %v; want %q", got, err, plain)
		}
	}
	if r, err := s.Verify(t.Context(), nil); err != nil || !r.OK() || r.Blobs != 2 {
		t.Errorf("Verify = %+v, %v", r, err)
	}
}
