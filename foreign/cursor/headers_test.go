package cursor_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
)

const headersSchema = `CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, workspaceId TEXT, createdAt INTEGER,
	lastUpdatedAt INTEGER, isArchived INTEGER, isSubagent INTEGER, recency INTEGER, checkpointAt INTEGER, value TEXT);`

func TestHeadersComeFromAllLists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema+headersSchema)
	cursortest.Run(t, db, `INSERT INTO composerHeaders VALUES
		('a', 'ws', 1000, 2000, 1, 0, 0, 0, '{"name": "from the table"}'),
		('gone', 'ws', 1000, 2000, 0, 1, 0, 0, NULL),
		('deleted', 'ws', 1, 2, 0, 0, 0, 0, 'no json')`)
	cursortest.Run(t, db, `INSERT INTO ItemTable VALUES ('composer.composerHeaders', '{"allComposers": [{"composerId": "listed", "name": "only listed"}, {"composerId": "b", "isArchived": true}, {"composerId": "gone"}]}')`)
	cursortest.Insert(t, db, "composerData:a", `{"name": "not needed"}`)
	cursortest.Insert(t, db, "composerData:b", `{"name": "from the row", "subagentInfo": {"parentComposerId": "a"}}`)
	cursortest.Insert(t, db, "composerData:c", `{broken`)
	cursortest.Insert(t, db, "composerData:deleted", nil)
	type short struct {
		ID, Title, Parent           string
		Archived, Subagent, Missing bool
	}
	var got []short
	s := cursortest.Open(t, path, nil)
	for _, h := range cursortest.Collect(t, s.Conversations(t.Context())) {
		got = append(got, short{h.ID, h.Title, h.Parent, h.Archived, h.Subagent, h.Missing})
	}
	want := []short{
		{ID: "a", Title: "from the table", Archived: true},
		{ID: "b", Title: "from the row", Parent: "a", Archived: true, Subagent: true},
		{ID: "c"},
		{ID: "deleted", Missing: true},
		{ID: "gone", Subagent: true, Missing: true},
		{ID: "listed", Title: "only listed", Missing: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, c := range cursortest.Collect(t, s.All(t.Context())) {
		switch c.ID {
		case "c":
			if len(c.Problems) != 1 || !errors.Is(c.Problems[0], cursor.ErrMalformed) {
				t.Errorf("problems of c = %v", c.Problems)
			}
		case "deleted", "gone", "listed":
			if len(c.Problems) != 1 || !errors.Is(c.Problems[0], cursor.ErrNotFound) {
				t.Errorf("problems of %s = %v", c.ID, c.Problems)
			}
		}
	}
}

func TestOtherTableOfHeadersIsPassedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema+"CREATE TABLE composerHeaders (composerId TEXT, somethingElse TEXT);")
	cursortest.Insert(t, db, "composerData:a", `{"name": "from the row"}`)
	headers := cursortest.Collect(t, cursortest.Open(t, path, nil).Conversations(t.Context()))
	if len(headers) != 1 || headers[0].Title != "from the row" {
		t.Errorf("headers = %+v", headers)
	}
}

func TestConversationGathersItsRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema)
	cursortest.Insert(t, db, "composerData:a", `{"_v": 16, "composerId": "other", "subComposerIds": ["s1", "s2", 3],
		"fullConversationHeadersOnly": [{"bubbleId": "m1", "type": 1}, {"bubbleId": "lost", "type": 2}, {"bubbleId": "bad", "type": 2}, {}],
		"originalFileStates": {"file:///x": {"isNewlyCreated": true}, "file:///y": {"content": null}}}`)
	cursortest.Insert(t, db, "ofsContent:a:file:///x", "original of x")
	cursortest.Insert(t, db, "bubbleId:a:m1", `{"type": 1, "text": "hi", "thinking": {"text": "hm"}, "toolFormerData": {"name": "t", "rawArgs": {"p": 1}, "result": "r"}}`)
	cursortest.Insert(t, db, "bubbleId:a:lost", nil)
	cursortest.Insert(t, db, "bubbleId:a:bad", `{"type":`)
	cursortest.Insert(t, db, "bubbleId:a:orphan-tombstone", nil)
	cursortest.Insert(t, db, "bubbleId:ab:neighbour", `{"type": 1}`)
	cursortest.Insert(t, db, "agentKv:bubbleCheckpoint:a:m1", "nonsense")
	s := cursortest.Open(t, path, nil)
	c := conversation(t, s, "a")
	if d := cmp.Diff([]string{"s1", "s2"}, c.Children); d != "" {
		t.Error(d)
	}
	if len(c.Problems) != 2 {
		t.Errorf("problems = %v, want the other id and the empty entry", c.Problems)
	}
	want := map[string]cursor.Original{
		"file:///x": {Content: "original of x", Known: true, NewlyCreated: true}, "file:///y": {},
	}
	if d := cmp.Diff(want, c.Originals); d != "" {
		t.Error(d)
	}
	msgs := cursortest.Collect(t, s.Messages(t.Context(), c))
	if len(msgs) != 3 {
		t.Fatalf("messages = %+v, want 3", msgs)
	}
	m := msgs[0]
	if m.Thinking != "hm" || m.Tool == nil || m.Tool.Input != `{"p": 1}` || m.Tool.Output != "r" || !errors.Is(m.Problem, cursor.ErrDataLoss) {
		t.Errorf("m1 = %+v", m)
	}
	if !errors.Is(msgs[1].Problem, cursor.ErrNotFound) || msgs[1].Role != cursor.RoleAssistant {
		t.Errorf("lost = %+v", msgs[1])
	}
	if !errors.Is(msgs[2].Problem, cursor.ErrMalformed) || string(msgs[2].Raw) != `{"type":` {
		t.Errorf("bad = %+v", msgs[2])
	}
}

func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema)
	for _, key := range []string{"a%b:1", "a_b:1", "axb:1", "a%b:2", "a\xff", "a\xff\xff", "b"} {
		cursortest.Insert(t, db, key, nil)
	}
	s := cursortest.Open(t, path, nil)
	for prefix, want := range map[string][]string{
		"a%b:": {"a%b:1", "a%b:2"}, "a_": {"a_b:1"}, "a\xff": {"a\xff", "a\xff\xff"}, "zz": nil,
		"": {"a%b:1", "a%b:2", "a_b:1", "axb:1", "a\xff", "a\xff\xff", "b"},
	} {
		if d := cmp.Diff(want, cursortest.Collect(t, s.Keys(t.Context(), prefix))); d != "" {
			t.Errorf("Keys(%q): %s", prefix, d)
		}
	}
}
