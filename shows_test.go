package stet

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/recall"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

// canaries are texts that an encrypted store must not show, by what they are.
var canaries = map[string]string{
	"name of a file": "canaryfile.txt", "name of a directory": "canarydir", "content": "canarycontent of a file\n", "prompt": "canaryprompt",
	"title": "canarytitle", "label": "canarylabel", "author": "canaryauthor", "name of a tool": "canarytool", "word of an agent": "canarydelta",
	"name of an agent": "canarynamed", "title in the compatible form": "canarydiff", "result of a call": "canaryresult", "command of a process": "canarycommand",
	"holder of a turn": "canaryholder", "name of an ignored file": "canaryignored",
}

// shown are the texts that it does show, as docs/GUARANTEES.md says.
var shown = map[string]string{
	"id of a conversation": "canaryid", "id of a message": "canarymessage", "name of a pin": "canarypin", "id of an agent": "canaryagent",
	"id of a tool call": "canarycall", "id of a checkpoint in the compatible form": "canaryjson",
}

// useEverything lets a store do what leaves something on disk.
func useEverything(t *testing.T, db *DB, space string) {
	t.Helper()
	ctx := t.Context()
	c, err := db.Conversations().Create(ctx, conversation.Info{ID: shown["id of a conversation"], Title: canaries["title"], Labels: map[string]string{canaries["label"]: "x"}})
	must(t, err)
	for range 2 {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: strings.Repeat(canaries["prompt"]+" ", 9)})
		must(t, err)
		must(t, c.AppendTurn(ctx, turn))
		_, err = c.Save(ctx, &conversation.SaveOptions{MessageID: shown["id of a message"], Author: canaries["author"]})
		must(t, err)
	}
	_, err = db.Conversations().Pin(ctx, shown["name of a pin"], shown["id of a conversation"], 1)
	must(t, err)

	w, err := db.Checkpoints().Open(ctx, space)
	must(t, err)
	req := checkpoint.Request{Conversation: shown["id of a conversation"], Label: canaries["label"], Tool: canaries["name of a tool"], Author: canaries["author"]}
	before, err := w.Checkpoint(ctx, req)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(space, ".gitignore"), []byte(canaries["name of an ignored file"]+"\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(space, canaries["name of an ignored file"]), []byte("x"), 0o600))
	turn := req // of a process, with stamps of ignored files
	turn.Turn, turn.Side, turn.MessageID = 1, checkpoint.Before, shown["id of a message"]
	turn.Holder.ID = canaries["holder of a turn"]
	if me, ok := checkpoint.ProcessOf(os.Getpid(), canaries["command of a process"]); ok {
		turn.Holder.Processes = []checkpoint.Process{me}
	}
	_, err = w.Checkpoint(ctx, turn)
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(space, canaries["name of a directory"]), 0o700))
	must(t, os.WriteFile(filepath.Join(space, canaries["name of a directory"], canaries["name of a file"]), []byte(canaries["content"]), 0o600))
	_, err = w.Checkpoint(ctx, req)
	must(t, err)
	must(t, db.Checkpoints().Pin(ctx, shown["name of a pin"], before.Record.ID, canaries["author"]))
	plan, err := w.Plan(ctx, checkpoint.RewindRequest{To: before.Record.ID})
	must(t, err)
	_, err = w.Rewind(ctx, plan.Request(), plan.Token)
	must(t, err)
	_, err = w.Undo(ctx, nil)
	must(t, err)

	index, err := db.Search(ctx)
	must(t, err)
	_, err = index.Update(ctx)
	must(t, err)
	found, err := index.Search(ctx, canaries["prompt"], nil)
	must(t, err)
	if len(found.Hits) == 0 {
		t.Error("search finds nothing: the scenario tests too little")
	}
	talk(t, db, "other", 2)
	agentsAndCalls(t, db)
	_, err = db.Archive(ctx, shown["id of a conversation"])
	must(t, err)
	_, err = db.Collect(ctx, &upkeep.CollectOptions{Grace: -1})
	must(t, err)
}

// agentsAndCalls stores what agents that run elsewhere, and the calls of runs, leave.
func agentsAndCalls(t *testing.T, db *DB) {
	t.Helper()
	ctx := t.Context()
	agent := shown["id of an agent"]
	_, err := db.Agents().Create(ctx, cloudagent.Spec{ID: agent, Name: canaries["name of an agent"], Labels: map[string]string{canaries["label"]: canaries["label"]}})
	must(t, err)
	_, err = db.Agents().AppendUpdate(ctx, agent, nil, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{
		TextDelta: &agentv1.TextDeltaUpdate{Text: canaries["word of an agent"]},
	}})
	must(t, err)
	call := func(part uint64) string { return keyspace.Exec("other", shown["id of a tool call"], part) }
	must(t, db.Rows().Commit(ctx, &kv.Batch{Set: []kv.Set{
		{Key: call(0), Value: []byte{1, 1}}, {Key: call(1), Value: []byte(canaries["result of a call"])},
		{Key: keyspace.JSONCheckpoint("other", shown["id of a checkpoint in the compatible form"]), Value: []byte(`{"files":[],"nonExistentFiles":[],"newlyCreatedFolders":[],"activeInlineDiffs":[],"x":"` + canaries["title in the compatible form"] + `"}`)},
	}}))
}

// TestWhatAnEncryptedStoreShows looks through every byte of a store's directory.
func TestWhatAnEncryptedStoreShows(t *testing.T) {
	dir, unlock := encryptedDir(t)
	space := filepath.Join(t.TempDir(), "canaryspace")
	must(t, os.Mkdir(space, 0o700))
	hold(t, dir, &unlock, func(db *DB) {
		useEverything(t, db, space)
		// While it is open there is more: the log of the database, for one.
		showsNothing(t, dir, space)
	})
	showsNothing(t, dir, space)
	for what, text := range shown {
		if !contains(t, dir, []byte(text)) {
			t.Errorf("the store does not show the %s, which docs/GUARANTEES.md says it does", what)
		}
	}
	real, err := filepath.EvalSymlinks(space)
	must(t, err)
	if !contains(t, dir, []byte(checkpoint.WorkspaceID(real))) {
		t.Error("the store does not show the hash of a workspace's path, which docs/GUARANTEES.md says it does")
	}
}

func showsNothing(t *testing.T, dir, space string) {
	t.Helper()
	content, path := sha256.Sum256([]byte(canaries["content"])), blob.Sum([]byte(canaries["prompt"]))
	secrets := map[string][]byte{
		"hash of a content": content[:], "hash of a content in hex": []byte(hex.EncodeToString(content[:])), "half of it": content[:16],
		"hash of a prompt": path[:], "path of the workspace": []byte("canaryspace"),
	}
	for what, text := range canaries {
		secrets[what] = []byte(text)
	}
	for what, secret := range secrets {
		if contains(t, dir, secret) {
			t.Errorf("the store shows the %s", what)
		}
	}
}

// contains looks for bytes in the files below a directory, and in their names.
func contains(t *testing.T, dir string, what []byte) (found bool) {
	t.Helper()
	escaped := []byte(keyspace.Escape(string(what)))
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, what) || bytes.Contains(data, escaped) || strings.Contains(d.Name(), string(what)) {
			t.Logf("%q is in %s", what, d.Name())
			found = true
		}
		return err
	})
	must(t, err)
	return found
}

// TestPlainIndexesOfAnEarlierReleaseGo puts indexes beside a store as earlier
// releases left them: one of a workspace that nobody uses again, one half written.
func TestPlainIndexesOfAnEarlierReleaseGo(t *testing.T) {
	dir, unlock := encryptedDir(t)
	space := t.TempDir()
	hold(t, dir, &unlock, func(db *DB) { useEverything(t, db, space) })
	dropMark(t, dir)
	indexes := filepath.Join(dir, IndexName)
	for _, name := range []string{"0123456789abcdef.index", "0123456789abcdef.index.tmp-123"} {
		must(t, os.WriteFile(filepath.Join(indexes, name), []byte("stWi\x02\x00\x00\x00 canaryfile.txt"), 0o600))
	}
	recalled := recall.New(filepath.Join(indexes, recall.Name), nil)
	recalled.Put("trees", []byte("canaryfile.txt"))
	if recalled.Get("trees") == nil {
		t.Fatal("nothing is recalled")
	}
	hold(t, dir, &unlock, func(*DB) {})
	showsNothing(t, dir, space)
	left, err := filepath.Glob(filepath.Join(indexes, "*.index"))
	if err != nil || len(left) != 1 {
		t.Errorf("indexes %v, %v: want the sealed one alone", left, err)
	}
}
