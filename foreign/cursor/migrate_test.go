package cursor_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
)

func document(t testing.TB, text string) cursor.Document {
	t.Helper()
	var d cursor.Document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

const oldRow = `{"_v": 0, "composerId": "old", "name": "old one", "future": [1, {"x": 2}],
	"latestCheckpoint": {"files": [{"uri": "file:///w/a", "originalModelDiffWrtV0": [{"original": {"startLineNumber": 1, "endLineNumberExclusive": 1}, "modified": ["x"]}]}]},
	"conversation": [
		{"type": 1, "bubbleId": "m1", "text": "hi", "checkpoint": {"files": []}},
		{"type": 2, "bubbleId": "m2", "text": "ho", "checkpointId": "kept"},
		"odd",
		{"type": 2, "text": "no id"}]}`

func TestMigrateV1(t *testing.T) {
	before := document(t, oldRow)
	after, taken := cursor.MigrateV1(before)
	again, takenAgain := cursor.MigrateV1(before)
	if _, still := before["latestCheckpoint"]; !still {
		t.Error("the given row was changed")
	}
	if len(taken) != 2 || len(takenAgain) != 2 || string(after["latestCheckpointId"]) != string(again["latestCheckpointId"]) {
		t.Errorf("taken %d, then %d; ids %s and %s", len(taken), len(takenAgain), after["latestCheckpointId"], again["latestCheckpointId"])
	}
	if _, still := after["latestCheckpoint"]; still || string(after["_v"]) != "1" || string(after["future"]) != `[1, {"x": 2}]` {
		t.Errorf("after = %s", after)
	}
	if text := string(after["conversation"]); strings.Contains(text, `"checkpoint":`) || !strings.Contains(text, `"kept"`) {
		t.Errorf("conversation = %s", text)
	}
	newer := document(t, `{"_v": 16, "latestCheckpointId": "cp"}`)
	if same, taken := cursor.MigrateV1(newer); taken != nil || len(same) != 2 {
		t.Errorf("a row without checkpoints inside became %s", same)
	}
}

// Version 11 moved the state out of the row, behind a pointer. Rows of earlier versions are
// read as if that had happened.
func TestStatesInsideRowsAreRead(t *testing.T) {
	state, err := hex.DecodeString(cursortest.ReadExpectation(t, "testdata/expected.json").State)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema)
	for id, text := range map[string]string{
		"hex": hex.EncodeToString(state), "inline": "~" + base64.StdEncoding.EncodeToString(state), "bad": "zz", "empty": "~",
	} {
		cursortest.Insert(t, db, "composerData:"+id, `{"_v": 10, "composerId": "`+id+`", "conversationState": "`+text+`"}`)
	}
	db.Close()
	s := cursortest.Open(t, path, nil)
	for _, id := range []string{"hex", "inline"} {
		if c, err := s.Conversation(t.Context(), id); err != nil || c.StateErr != nil || c.State == nil || c.State.ID != blob.Sum(state) {
			t.Errorf("%s: %+v, %v", id, c, err)
		}
	}
	if c, err := s.Conversation(t.Context(), "bad"); err != nil || !errors.Is(c.StateErr, cursor.ErrDataLoss) || c.State != nil {
		t.Errorf("a state that cannot be read: %+v, %v", c, err)
	}
	if c, err := s.Conversation(t.Context(), "empty"); err != nil || c.StateErr != nil || c.State != nil && len(c.State.Data) > 0 {
		t.Errorf("an empty state: %+v, %v", c, err)
	}
}

func TestOldRowsAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema)
	cursortest.Insert(t, db, "composerData:old", oldRow)
	cursortest.Insert(t, db, "checkpointId:old:kept", `{"files": []}`)
	s := cursortest.Open(t, path, nil)
	c := conversation(t, s, "old")
	msgs := cursortest.Collect(t, s.Messages(t.Context(), c))
	if len(msgs) != 3 || msgs[0].Text != "hi" || msgs[0].Before == "" || msgs[1].Before != "kept" || msgs[2].Text != "no id" {
		t.Errorf("messages = %+v", msgs)
	}
	if len(c.Problems) != 1 || !errors.Is(c.Problems[0], cursor.ErrMalformed) {
		t.Errorf("problems = %v, want one about the odd message", c.Problems)
	}
	ids := cursortest.Collect(t, s.Checkpoints(t.Context(), c))
	if len(ids) != 3 || ids[0] != "kept" {
		t.Fatalf("checkpoints = %v", ids)
	}
	latest, err := s.Checkpoint(t.Context(), c, c.LatestCheckpoint)
	if err != nil || len(latest.Files) != 1 || latest.Files[0].URI.String() != "file:///w/a" || len(latest.Files[0].Changes) != 1 {
		t.Errorf("latest = %+v, %v", latest, err)
	}
}

func TestNewerVersionIsReadAndReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema)
	cursortest.Insert(t, db, "composerData:n", `{"_v": 99, "composerId": "n", "name": "from tomorrow", "fullConversationHeadersOnly": [{"bubbleId": "m", "type": 1}]}`)
	cursortest.Insert(t, db, "bubbleId:n:m", `{"_v": 99, "type": 1, "text": "hello"}`)
	s := cursortest.Open(t, path, nil)
	c := conversation(t, s, "n")
	if c.Title != "from tomorrow" || len(c.Problems) != 1 || !errors.Is(c.Problems[0], cursor.ErrNewerVersion) {
		t.Errorf("conversation = %+v", c)
	}
	if msgs := cursortest.Collect(t, s.Messages(t.Context(), c)); len(msgs) != 1 || msgs[0].Text != "hello" {
		t.Errorf("messages = %+v", msgs)
	}
}

func TestHydrationNamesTheSourceThatFailed(t *testing.T) {
	inline := "~" + base64.StdEncoding.EncodeToString([]byte{0x88, 0x01, 0x02}) // self_summary_count
	other := blob.New([]byte{0x88, 0x01, 0x03})
	missing := blob.Sum([]byte("missing")).String()
	tests := []struct {
		name, pointer, field string
		source               string // of the state; "" for none
		lost                 string // in the error; "" for none
		alternates           int
	}{
		{"nothing", "", "", "", "", 0},
		{"pointer alone", other.ID.String(), "", "pointer", "", 0},
		{"pointer in upper case with space", " " + strings.ToUpper(other.ID.String()) + "\n", "", "pointer", "", 0},
		{"pointer and another inline", other.ID.String(), inline, "pointer", "", 1},
		{"pointer to nothing", missing, "", "", "agentKv:checkpoint:c", 0},
		{"pointer to nothing, inline", missing, inline, "inline state", "agentKv:checkpoint:c", 0},
		{"pointer that is none", "xyz", inline, "inline state", "agentKv:checkpoint:c", 0},
		{"hex", "", "880102", "hex string", "", 0},
		{"hex of a stored blob", "", other.ID.String(), "pointer", "", 0},
		{"hex of a missing blob", "", missing, "", "conversationState", 0},
		{"not hex", "", "xyz", "", "conversationState", 0},
		{"not base64", "", "~***", "", "conversationState", 0},
		{"not a message", "", "~" + base64.StdEncoding.EncodeToString([]byte{0xff}), "", "conversationState", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.vscdb")
			db := cursortest.Create(t, path, cursortest.EditorSchema)
			cursortest.Insert(t, db, "agentKv:blob:"+other.ID.String(), other.Data)
			if tt.pointer != "" {
				cursortest.Insert(t, db, "agentKv:checkpoint:c", tt.pointer)
			}
			field, err := json.Marshal(tt.field)
			if err != nil {
				t.Fatal(err)
			}
			cursortest.Insert(t, db, "composerData:c", `{"_v": 16, "conversationState": `+string(field)+`}`)
			c := conversation(t, cursortest.Open(t, path, nil), "c")
			source := ""
			if c.State != nil {
				source = c.State.Source
			}
			if source != tt.source || len(c.Alternates) != tt.alternates {
				t.Errorf("source = %q, %d alternates; want %q, %d", source, len(c.Alternates), tt.source, tt.alternates)
			}
			if tt.lost == "" && c.StateErr != nil || tt.lost != "" && (!errors.Is(c.StateErr, cursor.ErrDataLoss) || !strings.Contains(c.StateErr.Error(), tt.lost)) {
				t.Errorf("error = %v, want one that names %q", c.StateErr, tt.lost)
			}
		})
	}
}
