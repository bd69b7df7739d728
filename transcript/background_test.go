package transcript_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/transcript"
)

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	check(t, err)
	return string(data)
}

// names returns the files below a directory.
func names(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	check(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	}))
	return out
}

func TestWriteFiles(t *testing.T) {
	f := newFixture(t)
	tr, err := f.reader.Conversation(t.Context(), f.sample(t))
	check(t, err)
	dir := t.TempDir()
	check(t, transcript.WriteFiles(t.Context(), dir, tr, nil))
	for _, name := range []string{"sample/sample.jsonl", "sample/subagents/agent-a.jsonl", "sample/subagents/agent-b.jsonl"} {
		golden(t, strings.ReplaceAll(strings.TrimPrefix(name, "sample/"), "/", "."), readFile(t, filepath.Join(dir, name)))
	}
	if got := names(t, dir); len(got) != 3 {
		t.Errorf("files are %q", got)
	}
}

func TestFileNamesStayInside(t *testing.T) {
	dir := t.TempDir()
	seen := make(map[string]string)
	for _, id := range []string{"a", "A-1_b.c", "..", ".", "../../etc/x", "/abs", `c:\x`, "con", "COM1.txt", "a\x00b", "a.", "", strings.Repeat("n", 1000), strings.Repeat("n", 1001), "ä"} {
		path := transcript.FileOf(dir, id)
		rel, err := filepath.Rel(dir, path)
		if err != nil || len(strings.Split(rel, string(filepath.Separator))) != 2 || !filepath.IsLocal(rel) || len(filepath.Base(path)) > 200 {
			t.Errorf("the file of %.40q is %s", id, rel)
		}
		if other, ok := seen[path]; ok {
			t.Errorf("%.40q and %.40q have one file", id, other)
		}
		seen[path] = id
	}
}

func TestBackgroundFollowsSaves(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	c := f.save(t, "c", turn(t, user("one"), say("a")))
	dir := t.TempDir()
	var written atomic.Int64
	b := transcript.NewBackground(f.reader, dir, &transcript.BackgroundOptions{OnWritten: func(string) { written.Add(1) }})
	saved := func() {
		t.Helper()
		_, err := c.Save(ctx, nil)
		check(t, err)
		check(t, b.Write("c", c.Head().Root))
		check(t, b.Wait(ctx))
		if got, want := readFile(t, transcript.FileOf(dir, "c")), f.written(t, "c", transcript.JSONL, nil); got != want {
			t.Fatalf("after save %d the file says\n%s\nwant\n%s", c.Head().Seq, got, want)
		}
	}
	saved()
	first, err := os.Stat(transcript.FileOf(dir, "c"))
	check(t, err)
	check(t, c.AppendTurn(ctx, turn(t, user("two"))))
	saved()
	if second, err := os.Stat(transcript.FileOf(dir, "c")); err != nil || !os.SameFile(first, second) {
		t.Errorf("a new turn was not appended: %v", err)
	}
	check(t, c.AppendStep(ctx, say("grows")))
	saved()
	pending := shellCall("sleep", "", 0)
	pending.GetToolCall().GetShellToolCall().Result = nil
	check(t, c.AppendStep(ctx, pending))
	saved() // a turn that goes on
	check(t, c.AppendTurn(ctx, turn(t, user("three"), taskCall("x", say("inline one")))))
	saved()
	check(t, c.AppendTurn(ctx, turn(t, user("four"), taskCall("x", say("inline two")))))
	saved()
	if got := readFile(t, filepath.Join(dir, "c", "subagents", "x.jsonl")); !strings.Contains(got, "inline one") || !strings.Contains(got, "inline two") {
		t.Errorf("the subagent's file says\n%s", got)
	}
	check(t, os.WriteFile(transcript.FileOf(dir, "c"), []byte("somebody else\n"), 0o600))
	check(t, c.AppendTurn(ctx, turn(t, user("five"))))
	saved()
	_, err = c.Rewind(ctx, 2, nil)
	check(t, err)
	saved()
	check(t, b.Close(ctx))
	if written.Load() != 8 {
		t.Errorf("%d transcripts were told, want 8", written.Load())
	}
	if err := b.Write("c", c.Head().Root); !errors.Is(err, transcript.ErrClosed) {
		t.Errorf("writing after the end: %v, want ErrClosed", err)
	}
}

func TestBackgroundReportsErrors(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	c := f.save(t, "c", turn(t, user("one")))
	dir := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(dir, nil, 0o600)) // no directory can be made there
	told := make(chan error, 10)
	b := transcript.NewBackground(f.reader, dir, &transcript.BackgroundOptions{OnError: func(_ string, err error) { told <- err }})
	check(t, b.Write("c", c.Head().Root))
	err := b.Wait(ctx)
	if err == nil || !strings.Contains(err.Error(), "conversation c") {
		t.Errorf("Wait returned %v", err)
	}
	if len(told) != 1 {
		t.Errorf("%d errors were told, want 1", len(told))
	}
	check(t, b.Wait(ctx)) // each error is returned once
	check(t, b.Write("c", blob.Sum([]byte("no root"))))
	if err := b.Close(ctx); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Close returned %v, want ErrNotFound", err)
	}
}

func TestBackgroundWritesTheLatest(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	c := f.save(t, "c", turn(t, user("one")))
	dir := t.TempDir()
	hold, held := make(chan struct{}), make(chan struct{}, 100)
	var written atomic.Int64
	b := transcript.NewBackground(f.reader, dir, &transcript.BackgroundOptions{OnWritten: func(string) {
		if written.Add(1) == 1 {
			held <- struct{}{}
			<-hold
		}
	}})
	check(t, b.Write("c", c.Head().Root))
	<-held // the worker is busy now
	for range 20 {
		check(t, c.AppendTurn(ctx, turn(t, user("more"))))
		_, err := c.Save(ctx, nil)
		check(t, err)
		check(t, b.Write("c", c.Head().Root))
	}
	close(hold)
	check(t, b.Close(ctx))
	if written.Load() != 2 {
		t.Errorf("written %d times, want 2: 20 saves while busy make one", written.Load())
	}
	if got, want := readFile(t, transcript.FileOf(dir, "c")), f.written(t, "c", transcript.JSONL, nil); got != want {
		t.Errorf("the file is not the latest:\n%s", got)
	}
}

func TestToolOutputs(t *testing.T) {
	f := newFixture(t)
	content := "one\ntwo\n"
	steps := []*agentv1.ConversationStep{
		call(&agentv1.ToolCall{Tool: &agentv1.ToolCall_DeleteToolCall{DeleteToolCall: &agentv1.DeleteToolCall{
			Args:   &agentv1.DeleteArgs{Path: "old.txt"},
			Result: &agentv1.DeleteResult{Result: &agentv1.DeleteResult_Success{Success: &agentv1.DeleteSuccess{PrevContent: content}}},
		}}}),
		call(&agentv1.ToolCall{Tool: &agentv1.ToolCall_GrepToolCall{GrepToolCall: &agentv1.GrepToolCall{
			Args: &agentv1.GrepArgs{Pattern: "x"},
			Result: &agentv1.GrepResult{Result: &agentv1.GrepResult_Success{Success: &agentv1.GrepSuccess{
				WorkspaceResults: map[string]*agentv1.GrepUnionResult{"/w": {Result: &agentv1.GrepUnionResult_Content{Content: &agentv1.GrepContentResult{
					Matches: []*agentv1.GrepFileMatch{{File: "a.go", Matches: []*agentv1.GrepContentMatch{{LineNumber: 3, Content: "x := 1"}}}},
				}}}},
			}}},
		}}}),
		call(&agentv1.ToolCall{Tool: &agentv1.ToolCall_LsToolCall{LsToolCall: &agentv1.LsToolCall{
			Args: &agentv1.LsArgs{Path: "/w"},
			Result: &agentv1.LsResult{Result: &agentv1.LsResult_Success{Success: &agentv1.LsSuccess{DirectoryTreeRoot: &agentv1.LsDirectoryTreeNode{
				AbsPath: "/w", ChildrenDirs: []*agentv1.LsDirectoryTreeNode{{AbsPath: "/w/sub"}}, ChildrenFiles: []*agentv1.LsDirectoryTreeNode_File{{Name: "go.mod"}},
			}}}},
		}}}),
		call(&agentv1.ToolCall{Tool: &agentv1.ToolCall_EditToolCall{EditToolCall: &agentv1.EditToolCall{
			Args:   &agentv1.EditArgs{Path: "no.go"},
			Result: &agentv1.EditResult{Result: &agentv1.EditResult_Rejected{Rejected: &agentv1.EditRejected{Reason: "not now"}}},
		}}}),
		call(&agentv1.ToolCall{Tool: &agentv1.ToolCall_UpdateTodosToolCall{UpdateTodosToolCall: &agentv1.UpdateTodosToolCall{
			Result: &agentv1.UpdateTodosResult{Result: &agentv1.UpdateTodosResult_Success{Success: &agentv1.UpdateTodosSuccess{
				Todos: []*agentv1.TodoItem{{Content: "write", Status: agentv1.TodoStatus_TODO_STATUS_COMPLETED}, {Content: "rest"}},
			}}},
		}}}),
		call(&agentv1.ToolCall{Tool: &agentv1.ToolCall_WebFetchToolCall{WebFetchToolCall: &agentv1.WebFetchToolCall{
			Args: &agentv1.WebFetchArgs{Url: "https://example.test"},
		}}}),
	}
	f.save(t, "c", turn(t, user("x"), steps...))
	want := []transcript.Tool{
		{Name: "Delete", Status: transcript.Succeeded, Path: "old.txt", Removed: 2, Diff: "--- a/old.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"},
		{Name: "Grep", Status: transcript.Succeeded, Output: "a.go:3:x := 1\n"},
		{Name: "Ls", Status: transcript.Succeeded, Path: "/w", Output: "/w/\n  /w/sub/\n  go.mod\n"},
		{Name: "Edit", Status: transcript.Rejected, Path: "no.go", Output: "not now"},
		{Name: "UpdateTodos", Status: transcript.Succeeded, Output: "[x] write\n[ ] rest\n"},
		{Name: "WebFetch", Status: transcript.Pending},
	}
	for i, m := range f.messages(t, "c", nil)[1:] {
		got := *m.Tool
		got.Input = nil
		if got != want[i] {
			t.Errorf("call %d is %+v, want %+v", i, got, want[i])
		}
	}
}

func TestConversationsNeedAnID(t *testing.T) {
	tr := newFixture(t).reader.State(&conversation.State{})
	if err := transcript.WriteFiles(t.Context(), t.TempDir(), tr, nil); !errors.Is(err, conversation.ErrInvalid) {
		t.Errorf("writing files without an id: %v, want ErrInvalid", err)
	}
}
