package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
)

// All stories of a fresh store can be told, each leaves its files, and the live agent's
// turns follow.
func TestTell(t *testing.T) {
	db, err := stet.Open(t.Context(), filepath.Join(t.TempDir(), "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stage := Stage{DB: db, Options: db.CheckpointOptions(), User: "ada"}
	dir := t.TempDir()
	for _, s := range Stories() {
		told, err := Tell(t.Context(), stage, filepath.Join(dir, s.Place), s)
		if err != nil {
			t.Fatal(err)
		}
		if want := len(s.scenes); len(told.Checkpoints) != want && len(told.Checkpoints) != want+1 { // with the fork
			t.Errorf("%s: checkpoints %q", s.Title, told.Checkpoints)
		}
		for path, text := range s.end {
			if got, err := os.ReadFile(filepath.Join(told.Dir, path)); err != nil || string(got) != text {
				t.Errorf("%s: %s is %q, %v", s.Title, path, got, err)
			}
		}
	}
	page, err := db.Conversations().List(t.Context(), &conversation.ListOptions{})
	subagents := 0
	for _, info := range page.Conversations {
		if info.SubagentOf() != "" {
			subagents++
		}
		if info.Turn == nil || info.Turn.Model == "" || info.Turn.Input == 0 || info.Turn.Output == 0 || !info.Turn.Ended.After(info.Turn.Started) {
			t.Errorf("%s, %q: the last turn is %+v", info.Agent, info.Title, info.Turn)
		}
	}
	if want := len(Stories()) + 1 + subagents; err != nil || len(page.Conversations) != want || subagents != 1 { // with the fork
		t.Errorf("%d conversations, %d of subagents, %v", len(page.Conversations), subagents, err)
	}
	notes := filepath.Join(dir, library()["live"].Place)
	agent, err := stage.liveAgent(t.Context(), notes)
	if err != nil || agent.Conversation == "" {
		t.Fatalf("the live agent: %+v, %v", agent, err)
	}
	for n := 1; n <= 2; n++ {
		play := &livePlay{Stage: stage, dir: notes, agent: agent}
		if err := play.keep(t.Context(), liveScene(n)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := db.Conversations().Get(t.Context(), agent.Conversation)
	if err != nil || info.Turns != 2 {
		t.Errorf("%d turns of the live agent, %v", info.Turns, err)
	}
}
