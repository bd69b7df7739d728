package stet

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/populate"
	"github.com/stet-dev/stet/kv"
)

// TestKeptIndexesNeedNoUpdate saves beside KeepIndexes, and searches without an update.
func TestKeptIndexesNeedNoUpdate(t *testing.T) {
	db, err := Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	kept := make(chan error)
	go func() { kept <- db.KeepIndexes(ctx) }()
	c, err := db.Conversations().Create(t.Context(), conversation.Info{})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "zebra"})
	if err == nil {
		err = c.AppendTurn(t.Context(), turn)
	}
	if err == nil {
		_, err = c.Save(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	index, err := db.Search(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		page, err := index.Search(t.Context(), "zebra", nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Hits) == 1 {
			break
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatal("the save is not found")
		}
	}
	cancel()
	if err := <-kept; err != nil {
		t.Error(err)
	}
}

// TestIndexesWaitForManyChanges has more changes than a search should see.
func TestIndexesWaitForManyChanges(t *testing.T) {
	db, err := Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	expect := func(when string, want bool) {
		t.Helper()
		if got, err := db.IndexesWait(t.Context()); err != nil || got != want {
			t.Errorf("%s: indexes wait: %v, %v; want %v", when, got, err, want)
		}
	}
	expect("empty", false)
	if err := populate.Conversations(t.Context(), db.Conversations(), 3); err != nil {
		t.Fatal(err)
	}
	expect("a few", false)
	b := &kv.Batch{}
	for i := range manyChanges {
		b.Set = append(b.Set, kv.Set{Key: keyspace.Changed(fmt.Sprint("gone", i))})
	}
	if err := db.Rows().Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	expect("many", true)
	if err := db.UpdateIndexes(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	expect("updated", false)
	index, err := db.Search(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if page, err := index.Search(t.Context(), "number2", nil); err != nil || len(page.Hits) != 1 {
		t.Errorf("found %v, %v", page.Hits, err)
	}
}
