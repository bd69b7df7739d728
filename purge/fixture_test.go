package purge_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/purge"
	"github.com/stet-dev/stet/transcript"
	"github.com/stet-dev/stet/upkeep"
)

const secret = "sk-live-0123456789-abcdefghij"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a store with a project in which a secret was captured.
type world struct {
	t       testing.TB
	store   string
	project string
	opts    *stet.Options
}

func newWorld(t testing.TB, encrypted bool) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, store: filepath.Join(dir, "store"), project: filepath.Join(dir, "project"), opts: &stet.Options{}}
	must(t, os.Mkdir(w.project, 0o755))
	if encrypted {
		must(t, w.open().Close())
		unlock := keyring.Raw(bytes.Repeat([]byte{7}, 32))
		_, err := keyring.Create(filepath.Join(w.store, stet.KeyringName), unlock)
		must(t, err)
		w.opts.Unlock = &unlock
	}
	return w
}

func (w *world) open() *stet.DB {
	w.t.Helper()
	db, err := stet.Open(w.t.Context(), w.store, w.opts)
	must(w.t, err)
	return db
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.project, name)
	must(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(w.t, os.WriteFile(path, []byte(text), 0o644))
}

func (w *world) read(name string) string {
	data, err := os.ReadFile(filepath.Join(w.project, name))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (w *world) space(db *stet.DB) *checkpoint.Workspace {
	w.t.Helper()
	space, err := db.Checkpoints().Open(w.t.Context(), w.project)
	must(w.t, err)
	return space
}

func (w *world) checkpoint(db *stet.DB, req checkpoint.Request) *checkpoint.Record {
	w.t.Helper()
	res, err := w.space(db).Checkpoint(w.t.Context(), req)
	must(w.t, err)
	return res.Record
}

// talk saves a conversation of some turns, each with an answer of its own.
func (w *world) talk(db *stet.DB, id, title string, said ...string) *conversation.Conversation {
	w.t.Helper()
	ctx := w.t.Context()
	c, err := db.Conversations().Create(ctx, conversation.Info{ID: id, Title: title})
	must(w.t, err)
	for _, text := range said {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text, MessageId: "m-" + strings.ReplaceAll(text, "\n", " ")})
		must(w.t, err)
		must(w.t, c.AppendTurn(ctx, turn))
		must(w.t, c.AppendStep(ctx, &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
			AssistantMessage: &agentv1.AssistantMessage{Text: `the tool said {"out":"` + strings.ReplaceAll(text, "\n", `\n`) + `"}`},
		}}))
		_, err = c.Save(ctx, &conversation.SaveOptions{MessageID: "m-" + strings.ReplaceAll(text, "\n", " ")})
		must(w.t, err)
	}
	return c
}

// history makes checkpoints and conversations with the secret in many places.
func (w *world) history(db *stet.DB) (first, last *checkpoint.Record) {
	w.t.Helper()
	w.write("main.go", "package main\n")
	w.write(".env", "TOKEN="+secret+"\n")
	w.write("deep/er/config.json", `{"token":"`+secret+`","retries":3}`)
	first = w.checkpoint(db, checkpoint.Request{Conversation: "shop", Turn: 1, Side: checkpoint.Before})
	w.write("main.go", "package main\n\nfunc main() {}\n")
	w.write(".env", "TOKEN="+secret+"\nMORE=1\n")
	w.checkpoint(db, checkpoint.Request{Conversation: "shop", Turn: 1, Side: checkpoint.After})
	w.write("main.go", "package main\n\nfunc main() { run() }\n")
	last = w.checkpoint(db, checkpoint.Request{})
	w.talk(db, "shop", "use "+secret, "begin here", "what is in .env? "+secret+" is", "go on after it")
	w.talk(db, "idle", "an old one", "one day", "the key was\n"+secret+"\nsaid he", "another day")
	w.talk(db, "clean", "nothing here", "hello there", "how are you")
	_, err := db.Conversations().Pin(w.t.Context(), "works", "shop", 2)
	must(w.t, err)
	return first, last
}

func (w *world) purger(db *stet.DB) *purge.Service {
	w.t.Helper()
	p, err := db.Purger()
	must(w.t, err)
	return p
}

// purge finds and removes, and returns what it found.
func (w *world) purge(db *stet.DB, target purge.Target) (*purge.Plan, *purge.Result) {
	w.t.Helper()
	p := w.purger(db)
	plan, err := p.Find(w.t.Context(), target)
	must(w.t, err)
	res, err := p.Remove(w.t.Context(), plan)
	must(w.t, err)
	return plan, res
}

// sound fails if something in the store is damaged or missing.
func (w *world) sound(db *stet.DB) {
	w.t.Helper()
	report, err := db.Check(w.t.Context(), &upkeep.CheckOptions{ReadData: true})
	must(w.t, err)
	for _, d := range report.Damage {
		w.t.Errorf("damage: %+v", d)
	}
}

// grep counts the files of the store that hold some bytes.
func (w *world) grep(text string) (files []string) {
	w.t.Helper()
	must(w.t, filepath.WalkDir(w.store, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			files = append(files, path)
		}
		return err
	}))
	return files
}

// text returns everything that is said in a conversation.
func text(t testing.TB, db *stet.DB, id string) string {
	t.Helper()
	talk, err := transcript.New(db.Conversations(), db.Blobs()).Conversation(t.Context(), id)
	must(t, err)
	var said []string
	for m, err := range talk.Messages(t.Context(), nil) {
		must(t, err)
		said = append(said, m.Text)
	}
	return talk.Info.Title + "\n" + strings.Join(said, "\n")
}
