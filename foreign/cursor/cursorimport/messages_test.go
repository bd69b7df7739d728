package cursorimport_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
	"github.com/stet-dev/stet/internal/testenv"
)

// editorStore makes an editor's store of rows.
func editorStore(t testing.TB, rows map[string]string) *cursor.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema)
	for key, value := range rows {
		cursortest.Insert(t, db, key, value)
	}
	db.Close()
	return cursortest.Open(t, path, nil)
}

func TestConversationWithoutStateIsBuiltFromMessages(t *testing.T) {
	src := editorStore(t, map[string]string{
		"composerData:c": `{"_v": 3, "composerId": "c", "name": "old", "createdAt": 1690000000000,
			"fullConversationHeadersOnly": [{"bubbleId": "1", "type": 1}, {"bubbleId": "2", "type": 2}, {"bubbleId": "3", "type": 2},
			{"bubbleId": "4", "type": 2}, {"bubbleId": "5", "type": 2}, {"bubbleId": "6", "type": 1}, {"bubbleId": "7", "type": 2}]}`,
		"bubbleId:c:1": `{"type": 1, "text": "list the files"}`,
		"bubbleId:c:2": `{"type": 2, "thinking": {"text": "I shall use ls"}, "text": "One moment."}`,
		"bubbleId:c:3": `{"type": 2, "toolFormerData": {"name": "run_terminal_cmd", "toolCallId": "t1", "status": "completed",
			"params": "{\"command\":\"ls\",\"cwd\":\"/w\"}", "result": "{\"output\":\"a.txt\\n\",\"exitCodeV2\":0}"}}`,
		"bubbleId:c:4": `{"type": 2, "toolFormerData": {"name": "read_file", "status": "completed",
			"params": "{\"targetFile\":\"/w/a.txt\"}", "result": "{\"contents\":\"one\"}"}}`,
		"bubbleId:c:5": `{"type": 2, "toolFormerData": {"name": "codebase_search", "status": "error",
			"rawArgs": "{\"query\":\"x\",\"n\":3}", "result": "no index", "weird": "composer.content.` + strings.Repeat("ab", 32) + `"}}`,
		"bubbleId:c:6": `{"type": 1, "text": "thanks"}`,
		"bubbleId:c:7": `{"type": 2, "text": "You are welcome."}`,
		"composer.content." + strings.Repeat("ab", 32): "text of a file",
	})
	db, dst := cursortest.OpenDB(t)
	r := importAll(t, src, dst, nil)
	if r.Conversations != 1 || r.Messages != 7 || len(r.Skipped) != 0 {
		t.Errorf("result = %+v", r)
	}
	text := jsonl(t, db, "c")
	at := 0
	for _, want := range []string{`"list the files"`, `"One moment."`, `"command":"ls"`, `/w/a.txt`, `codebase_search`, `"thanks"`, `"You are welcome."`} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("no %s, or out of order, in\n%s", want, text)
		}
		at += i
	}
	info, err := db.Conversations().Get(t.Context(), "c")
	if err != nil || info.Turns != 2 {
		t.Errorf("info = %+v, %v", info, err)
	}
	state, err := db.Conversations().Hydrate(t.Context(), "c", nil)
	if err != nil {
		t.Fatal(err)
	}
	call, err := state.Turns[0].Steps[2].Decode()
	if err != nil || call.GetToolCall().GetShellToolCall().GetResult().GetSuccess().GetStdout() != "a.txt\n" || call.GetToolCall().GetToolCallId() != "t1" {
		t.Errorf("shell call = %v, %v", call, err)
	}
	call, err = state.Turns[0].Steps[4].Decode()
	mcp := call.GetToolCall().GetMcpToolCall()
	if err != nil || mcp.GetArgs().GetArgs()["n"].GetNumberValue() != 3 || mcp.GetResult().GetError().GetError() != "no index" {
		t.Errorf("named call = %v, %v", call, err)
	}
	var kept []string
	for _, row := range sourceRows(t, dst, "c") {
		kept = append(kept, row.Key[:min(len(row.Key), 17)])
	}
	want := []string{"bubbleId:c:1", "bubbleId:c:2", "bubbleId:c:3", "bubbleId:c:4", "bubbleId:c:5", "bubbleId:c:6", "bubbleId:c:7", "composer.content.", "composerData:c"}
	if d := cmp.Diff(want, kept); d != "" {
		t.Error(d)
	}
	sound(t, db, 0)
}

func TestOldestRowsAreMigratedOnTheWay(t *testing.T) {
	src := editorStore(t, map[string]string{
		"composerData:old": `{"composerId": "old", "latestCheckpoint": {"files": [{"uri": "file:///w/a", "originalModelDiffWrtV0":
			[{"original": {"startLineNumber": 1, "endLineNumberExclusive": 2}, "modified": ["two"]}]}]},
			"originalFileStates": {"file:///w/a": {"content": "one\nend"}, "file:///w/new": {"isNewlyCreated": true}},
			"conversation": [{"type": 1, "bubbleId": "m", "text": "hi", "checkpoint": {"files": []}}, {"type": 2, "text": "hello"}]}`,
	})
	db, dst := cursortest.OpenDB(t)
	r := importAll(t, src, dst, nil)
	if r.Conversations != 1 || r.Messages != 2 || r.Checkpoints != 2 || len(r.Skipped) != 0 {
		t.Errorf("result = %+v", r)
	}
	source, err := cursorimport.ReadSource(t.Context(), dst, "old")
	if err != nil {
		t.Fatal(err)
	}
	v0, err := source.Originals(t.Context())
	if err != nil || !v0["file:///w/new"].NewlyCreated || v0["file:///w/a"].Content != "one\nend" {
		t.Errorf("originals = %v, %v", v0, err)
	}
	store, texts := jsoncheckpoint.NewStore(dst.Rows), 0
	for id, err := range store.List(t.Context(), "old") {
		if err != nil {
			t.Fatal(err)
		}
		cp, err := store.Get(t.Context(), "old", id)
		if err != nil || !strings.HasPrefix(id, "inline-") {
			t.Errorf("%s: %v", id, err)
		}
		for _, f := range cp.Files {
			if got := f.Text(v0[f.URI.String()].Content); got != "two\nend" {
				t.Errorf("text = %q", got)
			}
			texts++
		}
	}
	if texts != 1 {
		t.Errorf("%d files in checkpoints", texts)
	}
	sound(t, db, 0)
}

func TestSubagentsKnowTheirParents(t *testing.T) {
	row := func(id, more string) string {
		return fmt.Sprintf(`{"composerId": %q, "fullConversationHeadersOnly": [{"bubbleId": "m", "type": 1}]%s}`, id, more)
	}
	rows := map[string]string{
		"composerData:a-child": row("a-child", ""), // known only to its parent, and read before it
		"composerData:b":       row("b", `, "subComposerIds": ["a-child", "gone"]`),
		"composerData:c-child": row("c-child", `, "subagentInfo": {"parentComposerId": "b"}`),
	}
	for _, id := range []string{"a-child", "b", "c-child"} {
		rows["bubbleId:"+id+":m"] = `{"type": 1, "text": "x"}`
	}
	db, dst := cursortest.OpenDB(t)
	importAll(t, editorStore(t, rows), dst, nil)
	for _, id := range []string{"a-child", "c-child"} {
		info, err := db.Conversations().Get(t.Context(), id)
		if err != nil || info.Labels["parent"] != "b" {
			t.Errorf("%s: labels %v, %v", id, info.Labels, err)
		}
	}
}

// TestImportOfManyMessagesTakesLittleMemory imports a conversation that is much
// larger than the memory that the import may take.
func TestImportOfManyMessagesTakesLittleMemory(t *testing.T) {
	const size, limit = 32 << 10, 60 << 20 // the store's queue, its transaction and its compressor take 40 MiB
	messages := testenv.Scale(2500, 40_000)
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, "PRAGMA journal_mode=OFF;"+cursortest.EditorSchema+"BEGIN")
	var order []string
	for i := range messages {
		order = append(order, fmt.Sprintf(`{"bubbleId": "m%06d", "type": %d}`, i, 1+i%2))
		cursortest.Insert(t, db, fmt.Sprintf("bubbleId:c:m%06d", i), fmt.Sprintf(`{"type": %d, "text": "message %d", "filler": "%s"}`, 1+i%2, i, strings.Repeat("x", size)))
	}
	cursortest.Insert(t, db, "composerData:c", `{"composerId": "c", "fullConversationHeadersOnly": [`+strings.Join(order, ",")+`]}`)
	cursortest.Run(t, db, "COMMIT")
	db.Close()
	store, err := stet.Open(t.Context(), t.TempDir(), &stet.Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	dst := cursorimport.Target{Blobs: store.Blobs(), Rows: store.Rows()}
	var before, most int64 // the first measure has what the engines take once
	calls, start := 0, time.Now()
	r := importAll(t, cursortest.Open(t, path, nil), dst, &cursorimport.Options{Progress: func(cursorimport.Progress) {
		if calls++; calls == 4 {
			before = cursortest.Heap()
		} else if calls%8 == 0 {
			most = max(most, cursortest.Heap()-before)
		}
	}})
	t.Logf("%d messages, %d MB in %v: the heap grew by %d MB", r.Messages, messages*size>>20, time.Since(start).Round(time.Millisecond), most>>20)
	if r.Messages != messages || most > limit || calls < 16 {
		t.Errorf("the heap grew by %d bytes while %d messages were imported, want at most %d", most, r.Messages, limit)
	}
}
