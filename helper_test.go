package stet

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/upkeep"
)

// memBackend is a backend in memory, with a bucket.
func memBackend() Backend {
	blobs := memblob.New()
	return Backend{Blobs: blobs, Rows: memkv.New(blobs), Inventory: blobs, Objects: memblob.NewObjects()}
}

// openOver returns another node over a backend.
func openOver(t testing.TB, b Backend, ring *keyring.Ring) *DB {
	t.Helper()
	db, err := New(t.Context(), b, ring, &Options{CacheBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func newRing(t testing.TB) *keyring.Ring {
	t.Helper()
	ring, err := keyring.Create(filepath.Join(t.TempDir(), KeyringName), keyring.Raw(key))
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
func talk(t testing.TB, db *DB, id string, turns int) {
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

func sound(t testing.TB, db *DB) {
	t.Helper()
	report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
	must(t, err)
	for _, d := range report.Damage {
		t.Errorf("damage: %+v", d)
	}
}
