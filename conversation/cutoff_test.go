package conversation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

func TestRemovalCutsOffTheSession(t *testing.T) {
	ctx := context.Background()
	blobs := memblob.New()
	rows := memkv.New(blobs)
	now := time.UnixMilli(5_000_000)
	store := conversation.New(blobs, rows, &conversation.Options{Now: func() time.Time { return now }})
	create := func(id string, labels map[string]string) {
		t.Helper()
		if _, err := store.Create(ctx, conversation.Info{ID: id, Labels: labels}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(id string) conversation.Cutoff {
		t.Helper()
		if err := store.Delete(ctx, id, nil); err != nil {
			t.Fatal(err)
		}
		cut, _, err := store.Cutoff(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return cut
	}
	create("own", nil)
	if cut := remove("own"); cut != (conversation.Cutoff{}) {
		t.Errorf("a conversation that is no copy: %+v", cut)
	}
	labels := map[string]string{conversation.LabelSource: "agent", conversation.LabelPath: "/a file with spaces"}
	want := conversation.Cutoff{Source: "agent", Path: "/a file with spaces", Until: now, Removed: true}
	create("a:b", labels)
	if cut := remove("a:b"); cut != want {
		t.Errorf("got %+v, want %+v", cut, want)
	}

	// A later one keeps what an earlier one says.
	if err := store.CutOff(ctx, "a:b", conversation.Cutoff{Purged: true}); err != nil {
		t.Fatal(err)
	}
	create("a:b", labels)
	now = now.Add(time.Hour)
	want.Until, want.Purged = now, true
	if cut := remove("a:b"); cut != want {
		t.Errorf("got %+v, want %+v", cut, want)
	}
	for id, err := range store.SessionsCutOff(ctx) {
		if id != "a:b" || err != nil {
			t.Errorf("cut off: %s, %v", id, err)
		}
	}
}

func TestRowsOfCutoffs(t *testing.T) {
	key := keyspace.Cutoff("c")
	for value, want := range map[string]error{
		"1 1000 rp agent /path with spaces": nil,
		"1 1000 r  ":                        nil,
		"":                                  kv.ErrCorrupt,
		"1":                                 kv.ErrCorrupt,
		"1 1000 r agent":                    kv.ErrCorrupt,
		"1 x r agent /p":                    kv.ErrCorrupt,
		"1 -1 r agent /p":                   kv.ErrCorrupt,
		"1 1000 x agent /p":                 kv.ErrCorrupt,
		"0 1000 r agent /p":                 kv.ErrCorrupt,
		"2 whatever":                        kv.ErrNewerFormat,
	} {
		if err := conversation.CheckRow(kv.Row{Key: key, Value: []byte(value)}); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%q: %v, want %v", value, err, want)
		}
	}
	if err := conversation.CheckRow(kv.Row{Key: "stet:cutoff:a:b", Value: []byte("1 1000 r a /")}); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a malformed key: %v", err)
	}
}
