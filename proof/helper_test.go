package proof_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/proof"
)

// key is a fixed key; its seed is 32 bytes of 1.
var key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))

var public = key.Public().(ed25519.PublicKey)

// noon is when all proofs of the tests are signed.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a store with a project and two conversations.
type world struct {
	t       testing.TB
	db      *stet.DB
	store   string
	project string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, store: filepath.Join(dir, "store"), project: filepath.Join(dir, "project")}
	must(t, os.Mkdir(w.project, 0o755))
	var err error
	w.db, err = stet.Open(t.Context(), w.store, nil)
	must(t, err)
	t.Cleanup(func() { must(t, w.db.Close()) })
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.project, name)
	must(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(w.t, os.WriteFile(path, []byte(text), 0o644))
}

func (w *world) checkpoint(conversation string, turn uint64, side checkpoint.Side) *checkpoint.Record {
	w.t.Helper()
	space, err := w.db.Checkpoints().Open(w.t.Context(), w.project)
	must(w.t, err)
	res, err := space.Checkpoint(w.t.Context(), checkpoint.Request{Conversation: conversation, Turn: turn, Side: side})
	must(w.t, err)
	must(w.t, space.Close())
	return res.Record
}

func (w *world) talk(id, title string, said ...string) {
	w.t.Helper()
	ctx := w.t.Context()
	c, err := w.db.Conversations().Create(ctx, conversation.Info{ID: id, Title: title})
	must(w.t, err)
	for _, text := range said {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text})
		must(w.t, err)
		must(w.t, c.AppendTurn(ctx, turn))
		_, err = c.Save(ctx, nil)
		must(w.t, err)
	}
}

// history makes two conversations with files, and some operations.
func (w *world) history() (first, last *checkpoint.Record) {
	w.t.Helper()
	w.write("main.go", "package main\n")
	w.write("deep/er/notes.txt", "the token is sk-live-0123456789\n")
	w.talk("shop", "add retry", "begin", "go on", "finish")
	w.talk("other", "another", "hello")
	first = w.checkpoint("shop", 1, checkpoint.Before)
	w.log("note", "other")
	w.write("main.go", "package main\n\nfunc main() {}\n")
	last = w.checkpoint("shop", 1, checkpoint.After)
	w.log("note", "shop")
	w.log("note", "other")
	w.write("main.go", "package main // mine\n")
	w.checkpoint("", 0, checkpoint.NoSide)
	return first, last
}

func (w *world) log(kind, conversation string) {
	w.t.Helper()
	must(w.t, w.db.Checkpoints().Log(w.t.Context(), &checkpoint.Operation{Kind: kind, Conversation: conversation, Description: "about " + conversation}))
}

func (w *world) prove(about proof.Subject, contents bool) []byte {
	w.t.Helper()
	var buf bytes.Buffer
	opts := &proof.Options{Contents: contents, Now: func() time.Time { return noon }}
	must(w.t, proof.Write(w.t.Context(), &buf, proof.Stores{Blobs: w.db.Blobs(), Rows: w.db.Rows()}, about, key, opts))
	return buf.Bytes()
}

func verify(t testing.TB, data []byte) *proof.Result {
	t.Helper()
	res, err := proof.Verify(bytes.NewReader(data), &proof.VerifyOptions{Key: public})
	must(t, err)
	return res
}

// without is a store that has lost a blob.
type without struct {
	blob.Store
	lost blob.ID
}

func (s without) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == s.lost {
		return nil, blob.ErrNotFound
	}
	return s.Store.Get(ctx, id)
}
