package blame_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blame"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// say saves a turn of a conversation with a text, an edit and a reply, and returns its root.
// More steps come before the reply.
func (f *fixture) say(id, prompt, content string, more ...*agentv1.ConversationStep) checkpoint.Request {
	f.t.Helper()
	step := func(text string) *agentv1.ConversationStep {
		return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: text}}}
	}
	shell := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
		Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{Args: &agentv1.ShellArgs{Command: "go test ./..."}}}}}}
	edit := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
		Tool: &agentv1.ToolCall_EditToolCall{EditToolCall: &agentv1.EditToolCall{Args: &agentv1.EditArgs{Path: "a", StreamContent: &content}}}}}}
	steps := append([]*agentv1.ConversationStep{step("I look first."), shell, edit}, more...)
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: prompt, MessageId: "m1"}, append(steps, step("Done."))...)
	f.must(err)
	talk, err := f.convs.Create(f.t.Context(), conversation.Info{ID: id, Agent: "robot", Title: "a talk"})
	f.must(err)
	f.must(talk.AppendTurn(f.t.Context(), turn))
	save, err := talk.Save(f.t.Context(), &conversation.SaveOptions{MessageID: "m1", Turn: &conversation.TurnDetails{Model: "claude-9"}})
	f.must(err)
	return checkpoint.Request{Conversation: id, Root: save.Root, Turn: 1, MessageID: "m1"}
}

func TestWordsOfALine(t *testing.T) {
	f := newFixture(t)
	req := f.say("talk", "add a line", "1\nadded\n")
	f.write("a", "1\n")
	before := req
	before.Side = checkpoint.Before
	f.save(before)
	f.write("a", "1\nadded\n")
	f.write("made", "by the command\n")
	req.Side = checkpoint.After
	rec := f.save(req)
	file, err := f.File(t.Context(), rec, "a")
	f.must(err)
	teller := f.Teller()
	words, err := teller.Words(t.Context(), &file.Origins[file.Lines[1].Origin])
	f.must(err)
	if words.Agent != "robot" || words.Prompt != "add a line" || words.Model != "claude-9" {
		t.Errorf("got %+v", words)
	}
	call, err := teller.Call(t.Context(), words, "a", "added\n")
	f.must(err)
	if call == nil || call.Number != 2 || call.Tool != "Edit" {
		t.Fatalf("the call is %+v", call)
	}
	story, err := teller.Story(t.Context(), words, call)
	f.must(err)
	if story.Before != "I look first." || story.Reply != "Done." {
		t.Errorf("the story is %+v", story)
	}
	call, err = teller.Call(t.Context(), words, "made", "by the command\n")
	f.must(err)
	if call == nil || call.Command != "go test ./..." {
		t.Errorf("the only command is %+v", call)
	}
	// A line that an edit of another file has is not of that edit.
	call, err = teller.Call(t.Context(), words, "made", "added\n")
	f.must(err)
	if call == nil || call.Command == "" {
		t.Errorf("the line of another file is of %+v", call)
	}
	told, err := f.Tell(t.Context(), file)
	f.must(err)
	if len(told.Runs) != 2 || told.Runs[1].Line != 2 || told.Runs[1].Call == nil || told.Runs[1].Call.Number != 2 || told.Words[told.Runs[1].Origin].Agent != "robot" {
		t.Errorf("the runs are %+v", told.Runs)
	}
	nobody, err := teller.Words(t.Context(), &file.Origins[file.Lines[0].Origin])
	f.must(err)
	if *nobody != (blame.Words{}) {
		t.Errorf("words of the user: %+v", nobody)
	}
}

// TestStoryNamesFilesAsTheWorkspaceDoes checks the diff of an edit whose path is absolute.
func TestStoryNamesFilesAsTheWorkspaceDoes(t *testing.T) {
	f := newFixture(t)
	edit := func(path string) *agentv1.ConversationStep {
		return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
			Tool: &agentv1.ToolCall_EditToolCall{EditToolCall: &agentv1.EditToolCall{Args: &agentv1.EditArgs{Path: path},
				Result: &agentv1.EditResult{Result: &agentv1.EditResult_Success{Success: &agentv1.EditSuccess{
					BeforeFullFileContent: new(string), AfterFullFileContent: "in " + filepath.Base(path) + "\n"}}}}}}}}
	}
	req := f.say("talk", "write", "", edit(filepath.Join(f.w.Path(), "dir", "b")), edit("/elsewhere/c"))
	before := req
	before.Side = checkpoint.Before
	f.save(before)
	f.write("b", "in b\n")
	f.write("c", "in c\n")
	req.Side = checkpoint.After
	rec := f.save(req)
	for path, want := range map[string]string{"b": "--- a/dir/b\n+++ b/dir/b\n", "c": "--- a/elsewhere/c\n+++ b/elsewhere/c\n"} {
		file, err := f.File(t.Context(), rec, path)
		f.must(err)
		teller := f.Teller()
		words, err := teller.Words(t.Context(), &file.Origins[0])
		f.must(err)
		call, err := teller.Call(t.Context(), words, path, file.Lines[0].Text)
		f.must(err)
		story, err := teller.Story(t.Context(), words, call)
		f.must(err)
		if !strings.HasPrefix(story.Change, want) {
			t.Errorf("%s: the change is\n%s", path, story.Change)
		}
	}
}

// TestCommandBesideASubagent checks that a command is not named if a subagent may have run
// another one in the turn.
func TestCommandBesideASubagent(t *testing.T) {
	shell := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
		Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{Args: &agentv1.ShellArgs{Command: "make"}}}}}}
	for name, steps := range map[string][]*agentv1.ConversationStep{"steps in the call": {shell}, "steps elsewhere": nil} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			agent := "helper"
			req := f.say("talk", "build it", "1\n", &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
				Tool: &agentv1.ToolCall_TaskToolCall{TaskToolCall: &agentv1.TaskToolCall{
					Args: &agentv1.TaskArgs{Prompt: "run make"},
					Result: &agentv1.TaskResult{Result: &agentv1.TaskResult_Success{
						Success: &agentv1.TaskSuccess{AgentId: &agent, ConversationSteps: steps}}}}}}}})
			f.write("a", "1\n")
			before := req
			before.Side = checkpoint.Before
			f.save(before)
			f.write("made", "by make\n")
			req.Side = checkpoint.After
			file, err := f.File(t.Context(), f.save(req), "made")
			f.must(err)
			teller := f.Teller()
			words, err := teller.Words(t.Context(), &file.Origins[file.Lines[0].Origin])
			f.must(err)
			call, err := teller.Call(t.Context(), words, "made", "by make\n")
			f.must(err)
			if call != nil {
				t.Errorf("the line is of %+v", call)
			}
		})
	}
}

// TestAgentTrace checks what the specification requires of a record.
func TestAgentTrace(t *testing.T) {
	f := newFixture(t)
	req := f.say("talk", "add a line", "1\nadded\n")
	f.write("a", "1\n")
	before := req
	before.Side = checkpoint.Before
	f.save(before)
	f.write("a", "1\nadded\nadded too\n")
	req.Side = checkpoint.After
	file, err := f.File(t.Context(), f.save(req), "a")
	f.must(err)
	record, err := f.AgentTrace(t.Context(), time.Unix(0, 0), file)
	f.must(err)
	data, err := json.Marshal(record)
	f.must(err)
	var got struct {
		Version, ID, Timestamp string
		Files                  []struct {
			Path          string
			Conversations []struct {
				URL         string
				Contributor struct{ Type string }
				Ranges      []struct {
					Start int    `json:"start_line"`
					End   int    `json:"end_line"`
					Hash  string `json:"content_hash"`
				}
			}
		}
	}
	f.must(json.Unmarshal(data, &got))
	for what, ok := range map[string]bool{
		"version":   regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`).MatchString(got.Version),
		"id":        regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(got.ID),
		"timestamp": got.Timestamp == "1970-01-01T00:00:00.000Z",
		"files":     len(got.Files) == 1 && got.Files[0].Path == "a" && len(got.Files[0].Conversations) == 2,
	} {
		if !ok {
			t.Fatalf("%s is wrong in %s", what, data)
		}
	}
	human, ai := got.Files[0].Conversations[0], got.Files[0].Conversations[1]
	if human.Contributor.Type != "human" || human.URL != "" || len(human.Ranges) != 1 || human.Ranges[0].Start != 1 || human.Ranges[0].End != 1 {
		t.Errorf("the user's lines: %+v", human)
	}
	if ai.Contributor.Type != "ai" || ai.URL != "urn:stet:conversation:talk" || len(ai.Ranges) != 1 || ai.Ranges[0].Start != 2 || ai.Ranges[0].End != 3 {
		t.Errorf("the agent's lines: %+v", ai)
	}
	again, err := f.AgentTrace(t.Context(), time.Unix(9, 0), file)
	f.must(err)
	if again.ID != record.ID || len(ai.Ranges[0].Hash) != len("sha256:")+64 {
		t.Error("the same lines have another id, or a range has no hash")
	}
}

// TestWordsOfARewoundTurn checks that a turn is read from the newest state only where that one
// has the same message.
func TestWordsOfARewoundTurn(t *testing.T) {
	f := newFixture(t)
	req := f.say("talk", "add a line", "1\nadded\n")
	f.write("a", "1\n")
	before := req
	before.Side = checkpoint.Before
	f.save(before)
	f.write("a", "1\nadded\n")
	req.Side = checkpoint.After
	file, err := f.File(t.Context(), f.save(req), "a")
	f.must(err)
	words := func() *blame.Words {
		t.Helper()
		w, err := f.Teller().Words(t.Context(), &file.Origins[file.Lines[1].Origin])
		f.must(err)
		return w
	}
	add := func(talk *conversation.Conversation, id, text string) conversation.Save {
		t.Helper()
		said, err := conversation.NewTurn(&agentv1.UserMessage{Text: text, MessageId: id})
		f.must(err)
		f.must(talk.AppendTurn(t.Context(), said))
		save, err := talk.Save(t.Context(), nil)
		f.must(err)
		return save
	}
	talk, err := f.convs.Open(t.Context(), "talk")
	f.must(err)
	add(talk, "m2", "and another")
	if w := words(); w.Prompt != "add a line" || w.Model != "claude-9" {
		t.Errorf("after another turn: %+v", w)
	}
	// The first turn of the newest state is another one now.
	other, err := f.convs.Create(t.Context(), conversation.Info{ID: "other"})
	f.must(err)
	f.must(talk.SetRoot(t.Context(), add(other, "m3", "something else").Root))
	_, err = talk.Save(t.Context(), nil)
	f.must(err)
	if w := words(); w.Prompt != "add a line" {
		t.Errorf("after the conversation went another way: %+v", w)
	}
}
