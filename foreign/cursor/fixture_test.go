package cursor_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

func conversation(t testing.TB, s *cursor.Store, id string) *cursor.Conversation {
	t.Helper()
	c, err := s.Conversation(t.Context(), id)
	if err != nil {
		t.Fatalf("Conversation(%s): %v", id, err)
	}
	return c
}

func TestFixtureBlobsHaveTheExpectedContent(t *testing.T) {
	want := cursortest.ReadExpectation(t, "testdata/expected.json")
	s := cursortest.Open(t, "testdata/state.vscdb", nil)
	if s.Kind() != cursor.KindEditor {
		t.Fatalf("kind = %v, want editor", s.Kind())
	}
	var listed []string
	err := s.Blobs().(blob.Lister).List(t.Context(), blob.ID{}, func(info blob.Info) error {
		listed = append(listed, info.ID.String())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(listed) || len(listed) != len(want.Blobs) {
		t.Errorf("listed %d blobs, sorted %v, want %d", len(listed), slices.IsSorted(listed), len(want.Blobs))
	}
	for text, w := range want.Blobs {
		id, err := blob.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		data, err := s.Blobs().Get(t.Context(), id)
		if err != nil || len(data) != w.Len || blob.Sum(data) != id {
			t.Errorf("%s (%s, stored as %s): %d bytes, %v; want %d", text, w.Kind, w.Stored, len(data), err, w.Len)
		}
		v, err := s.Value(t.Context(), "agentKv:blob:"+text)
		if err != nil || (v.Class == cursor.ClassText) != (w.Stored == "hextext") {
			t.Errorf("%s: class %v, %v; stored as %s", text, v.Class, err, w.Stored)
		}
	}
}

func TestFixtureConversations(t *testing.T) {
	s := cursortest.Open(t, "testdata/state.vscdb", nil)
	got := cursortest.Collect(t, s.Conversations(t.Context()))
	want := []cursor.Header{
		{ID: cursortest.Legacy, Title: "legacy hex state", Created: time.UnixMilli(1690000000000).UTC()},
		{ID: cursortest.Current, Title: "fixture", Workspace: "ws-hash", Created: time.UnixMilli(1700000000000).UTC(), Updated: time.UnixMilli(1700000002000).UTC()},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := s.Conversation(t.Context(), cursortest.Deleted); !errors.Is(err, cursor.ErrNotFound) {
		t.Errorf("deleted conversation: %v, want ErrNotFound", err)
	}
	all := cursortest.Collect(t, s.All(t.Context()))
	if len(all) != 2 || all[0].ID != cursortest.Legacy || all[1].ID != cursortest.Current {
		t.Errorf("All gave %d conversations", len(all))
	}
}

func TestFixtureConversation(t *testing.T) {
	want := cursortest.ReadExpectation(t, "testdata/expected.json")
	s := cursortest.Open(t, "testdata/state.vscdb", nil)
	c := conversation(t, s, cursortest.Current)
	if c.Version != 16 || !c.Agentic || c.Mode != "agent" || c.LatestCheckpoint != "cp-latest" || len(c.Problems) != 0 {
		t.Errorf("conversation = %+v", c)
	}
	if d := cmp.Diff(map[string]cursor.Original{"file:///w/a.txt": {
		Content: "one\ntwo", Known: true, FirstEdit: "aaaaaaaa-0000-4000-8000-000000000001",
	}}, c.Originals); d != "" {
		t.Error(d)
	}
	for _, id := range []string{cursortest.Current, cursortest.Legacy} {
		c := conversation(t, s, id)
		if c.State == nil || c.StateErr != nil || hex.EncodeToString(c.State.Data) != want.State {
			t.Errorf("state of %s: %v, %v", id, c.State, c.StateErr)
			continue
		}
		m, err := c.State.Decode()
		if err != nil || len(m.GetTurns()) != 2 || len(m.GetSubagentStates()) != 1 {
			t.Errorf("decoded state of %s: %v, %v", id, m, err)
		}
	}
	if c.State.Source != "pointer" {
		t.Errorf("source = %q, want the pointer first", c.State.Source)
	}
	if head, err := s.Head(t.Context(), cursortest.Current); err != nil || head != c.State.ID {
		t.Errorf("head = %s, %v", head, err)
	}
}

func TestFixtureMessages(t *testing.T) {
	s := cursortest.Open(t, "testdata/state.vscdb", nil)
	c := conversation(t, s, cursortest.Current)
	msgs := cursortest.Collect(t, s.Messages(t.Context(), c))
	var got []string
	for _, m := range msgs {
		line := m.ID[len(m.ID)-1:] + " " + m.Role.String() + " " + m.Text
		if m.Tool != nil {
			line += m.Tool.Name + "/" + m.Tool.Status
		}
		if m.Orphan {
			line += " orphan"
		}
		if m.Problem != nil {
			line += " " + m.Problem.Error()
		}
		got = append(got, line)
	}
	want := []string{
		"0 user add a line",
		"1 assistant edit_file_v2/completed",
		"2 assistant done",
		"3 assistant orphan bubble orphan",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	tool := msgs[1]
	if tool.Before != "cp-1" || tool.After != "cp-2" || tool.Head != c.State.ID || tool.State == nil {
		t.Errorf("message = %+v", tool)
	}
	if msgs[0].State != nil || msgs[0].Created.IsZero() {
		t.Errorf("an empty state is none; message = %+v", msgs[0])
	}
}

func TestFixtureCheckpoints(t *testing.T) {
	want := cursortest.ReadExpectation(t, "testdata/expected.json")
	s := cursortest.Open(t, "testdata/state.vscdb", nil)
	c := conversation(t, s, cursortest.Current)
	ids := cursortest.Collect(t, s.Checkpoints(t.Context(), c))
	if d := cmp.Diff([]string{"cp-0", "cp-1", "cp-2", "cp-latest"}, ids); d != "" {
		t.Error(d)
	}
	read := func(id string) *jsoncheckpoint.Checkpoint {
		cp, err := s.Checkpoint(t.Context(), c, id)
		if err != nil {
			t.Fatal(err)
		}
		return cp
	}
	cp2 := read("cp-2")
	v0 := strings.Split(c.Originals["file:///w/a.txt"].Content, "\n")
	if d := cmp.Diff(want.Applied, jsoncheckpoint.Apply(v0, cp2.Files[0].Changes)); d != "" {
		t.Error(d)
	}
	if cp := read("cp-1"); !cp.Files[0].NewlyCreated || len(cp.NewFolders) != 1 || cp.NewFolders[0].String() != "file:///w/d" {
		t.Errorf("cp-1 = %+v", cp)
	}
	if cp := read("cp-latest"); len(cp.NonExistent) != 1 || cp.NonExistent[0].String() != "file:///w/gone.txt" {
		t.Errorf("cp-latest = %+v", cp)
	}
	if _, err := s.Checkpoint(t.Context(), c, "cp-9"); !errors.Is(err, cursor.ErrNotFound) {
		t.Errorf("missing checkpoint: %v", err)
	}
}

func TestFixtureCloudAgent(t *testing.T) {
	want := cursortest.ReadExpectation(t, "testdata/expected.json")
	s := cursortest.Open(t, "testdata/state.vscdb", nil)
	agents := cursortest.Collect(t, s.CloudAgents(t.Context()))
	if len(agents) != 1 || agents[0].Problem != nil {
		t.Fatalf("agents = %+v", agents)
	}
	a := agents[0]
	if a.ID != "bc-22222222-2222-4222-8222-222222222222" || a.Offset != "0000000000000009-0" ||
		a.Status != aiserverv1.CloudAgentWorkflowStatus_CLOUD_AGENT_WORKFLOW_STATUS_IDLE ||
		base64.StdEncoding.EncodeToString(a.Raw) != want.Cloud || a.Saved.Year() != 2023 {
		t.Errorf("agent = %+v", a)
	}
}

func TestFixtureVerify(t *testing.T) {
	want := cursortest.ReadExpectation(t, "testdata/expected.json")
	s := cursortest.Open(t, "testdata/state.vscdb", nil)
	r, err := s.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || r.Blobs != int64(len(want.Blobs)) || r.Blobs-r.OrphanCount != int64(len(want.Live)) {
		t.Errorf("report = %+v", r)
	}
	var orphans []string
	for _, f := range r.Orphans {
		orphans = append(orphans, f.ID.String())
	}
	if d := cmp.Diff(want.Orphans, orphans); d != "" {
		t.Error(d)
	}
}

func TestFixtureMeasure(t *testing.T) {
	s := cursortest.Open(t, "testdata/state.vscdb", nil)
	usage, err := s.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int64{}
	for _, u := range usage {
		rows[u.Family] = u.Rows
		if u.Family == "composerData" && u.Tombstones != 1 {
			t.Errorf("composerData: %d tombstones, want 1", u.Tombstones)
		}
	}
	want := map[string]int64{
		"agentKv:blob": 25, "composerData": 3, "bubbleId": 4, "checkpointId": 4, "agentKv:checkpoint": 1,
		"agentKv:bubbleCheckpoint": 1, "cloudAgent:metadata": 1, "codeBlockDiff": 1, "messageRequestContext": 1,
		"ofsContent": 1, "composer.content": 1,
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Error(d)
	}
}
