package upkeep_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
)

var key = bytes.Repeat([]byte{7}, 32)

// optionsFor returns options for a new store in dir; a key makes it encrypted.
func optionsFor(t testing.TB, dir string, key []byte) *stet.Options {
	t.Helper()
	if key == nil {
		return &stet.Options{}
	}
	unlock := keyring.Raw(key)
	if _, err := keyring.Create(filepath.Join(prepared(t, dir), stet.KeyringName), unlock); err != nil {
		t.Fatal(err)
	}
	return &stet.Options{Unlock: &unlock}
}

// openTest opens a store that is closed with the test; a key makes it encrypted.
func openTest(t testing.TB, key []byte) *stet.DB {
	t.Helper()
	dir := t.TempDir()
	db, err := stet.Open(t.Context(), dir, optionsFor(t, dir, key))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// prepared makes an empty store in dir, since a keyring is added to one.
func prepared(t testing.TB, dir string) string {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// content makes blobs of a size that compress like text, each different.
func content(size int) func() blob.Blob {
	words := bytes.Fields([]byte("func return if err nil error string byte range for the of and to in is that it was store blob commit write read file turn step state"))
	var n uint64
	var mu sync.Mutex
	return func() blob.Blob {
		mu.Lock()
		n++
		seed := n
		mu.Unlock()
		random := rand.New(rand.NewPCG(seed, 7))
		data := binary.BigEndian.AppendUint64(make([]byte, 0, size+16), random.Uint64())
		for len(data) < size {
			data = append(append(data, words[random.IntN(len(words))]...), ' ')
		}
		return blob.New(data[:size])
	}
}

// memBackend is a backend in memory, with a bucket.
func memBackend() stet.Backend {
	blobs := memblob.New()
	return stet.Backend{Blobs: blobs, Rows: memkv.New(blobs), Inventory: blobs, Objects: memblob.NewObjects()}
}

// openOver returns another node over a backend.
func openOver(t testing.TB, b stet.Backend, ring *keyring.Ring) *stet.DB {
	t.Helper()
	db, err := stet.New(t.Context(), b, ring, &stet.Options{CacheBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func newRing(t testing.TB) *keyring.Ring {
	t.Helper()
	ring, err := keyring.Create(filepath.Join(t.TempDir(), stet.KeyringName), keyring.Raw(key))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// talk makes a conversation with some turns, a message, a checkpoint of its
// workspace, and an agent.
func talk(t testing.TB, db *stet.DB, id string, turns int) {
	t.Helper()
	ctx := t.Context()
	c, err := db.Conversations().Create(ctx, conversation.Info{ID: id, Title: "about " + id})
	must(t, err)
	for i := range turns {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprintf("%s asks %d %s", id, i, bytes.Repeat([]byte("words "), 50))})
		must(t, err)
		must(t, c.AppendTurn(ctx, turn))
		_, err = c.Save(ctx, &conversation.SaveOptions{MessageID: fmt.Sprint("m", i)})
		must(t, err)
	}
	_, err = db.Agents().Create(ctx, cloudagent.Spec{ID: id, Name: "agent of " + id})
	must(t, err)
	_, err = db.Agents().SaveState(ctx, id, &aiserverv1.CloudAgentState{NumPriorInteractionUpdates: 7}, nil, nil)
	must(t, err)
	for i := range 3 {
		_, err = db.Agents().AppendUpdate(ctx, id, nil, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{
			TextDelta: &agentv1.TextDeltaUpdate{Text: fmt.Sprint("delta ", i)},
		}})
		must(t, err)
	}
}

func capture(t testing.TB, db *stet.DB, dir, id, text string) *checkpoint.Record {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "file of "+id), []byte(text), 0o600))
	w, err := db.Checkpoints().Open(t.Context(), dir)
	must(t, err)
	root, err := db.Conversations().Head(t.Context(), id)
	must(t, err)
	res, err := w.Checkpoint(t.Context(), checkpoint.Request{Conversation: id, Root: root})
	must(t, err)
	return res.Record
}

func sound(t testing.TB, db *stet.DB) {
	t.Helper()
	report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
	must(t, err)
	for _, d := range report.Damage {
		t.Errorf("damage: %+v", d)
	}
}

// got returns a value that comes without an error.
func got[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
