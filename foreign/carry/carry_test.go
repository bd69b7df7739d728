package carry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/carry"
	"github.com/stet-dev/stet/foreign/intake"
	"github.com/stet-dev/stet/foreign/pi"
	"github.com/stet-dev/stet/kv/memkv"
)

const record = `{"type":"session","version":3,"id":"s1","timestamp":"2026-11-16T12:00:00.000Z","cwd":"/workspace"}
{"type":"message","id":"00000001","parentId":null,"timestamp":"2026-11-16T12:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"add retry"}]}}
{"type":"message","id":"00000002","parentId":"00000001","timestamp":"2026-11-16T12:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"added"}],"stopReason":"stop"}}
{"type":"message","id":"00000003","parentId":"00000002","timestamp":"2026-11-16T12:00:03.000Z","message":{"role":"user","content":[{"type":"text","text":"remove it"}]}}
{"type":"message","id":"00000004","parentId":"00000003","timestamp":"2026-11-16T12:00:04.000Z","message":{"role":"assistant","content":[{"type":"text","text":"removed"}],"stopReason":"stop"}}
`

// copied returns a store with the copy of a session of two turns, and the path of the
// session.
func copied(dir string) (*conversation.Store, string, error) {
	blobs := memblob.New()
	rows := memkv.New(blobs)
	session := foreign.Session{Agent: "pi", ID: "s1", Workspace: "/workspace", Path: filepath.Join(dir, "session.jsonl")}
	if err := os.WriteFile(session.Path, []byte(record), 0o600); err != nil {
		return nil, "", err
	}
	if _, err := intake.New(blobs, rows, pi.New()).Session(context.Background(), session); err != nil {
		return nil, "", err
	}
	return conversation.New(blobs, rows, nil), session.Path, nil
}

// rewind makes a save of the conversation its current state.
func rewind(store *conversation.Store, save uint64) error {
	c, err := store.Open(context.Background(), "s1")
	if err == nil {
		_, err = c.Rewind(context.Background(), save, nil)
	}
	return err
}

// rewound is copied with the conversation after its first turn.
func rewound(t *testing.T) (*conversation.Store, string) {
	t.Helper()
	store, path, err := copied(t.TempDir())
	if err == nil {
		err = rewind(store, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	return store, path
}

func TestPrepare(t *testing.T) {
	ctx := context.Background()
	store, path := rewound(t)
	c, err := carry.Prepare(ctx, store, foreign.Host{}, "s1")
	if err != nil || len(c.Created) != 1 {
		t.Fatalf("got %+v, %v", c, err)
	}
	made, err := os.ReadFile(c.Created[0])
	if err != nil || !strings.Contains(string(made), "add retry") || strings.Contains(string(made), "remove it") {
		t.Errorf("the copy is %s, %v", made, err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != record {
		t.Errorf("the session was changed: %v", err)
	}
	again, err := carry.Prepare(ctx, store, foreign.Host{}, "s1")
	if err != nil || fmt.Sprint(again) != fmt.Sprint(c) {
		t.Errorf("the second call made another continuation: %+v, %v", again, err)
	}
	if err := rewind(store, 2); err != nil {
		t.Fatal(err)
	}
	info, err := store.Get(ctx, "s1")
	if _, ok := carry.Kept(info); err != nil || ok {
		t.Errorf("the continuation is kept for another state: %v", err)
	}
}

func TestOriginOfAContinuation(t *testing.T) {
	ctx := context.Background()
	store, _ := rewound(t)
	c, err := carry.Prepare(ctx, store, foreign.Host{}, "s1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Fork(ctx, "s1", 0, conversation.Info{ID: "fork"}); err != nil {
		t.Fatal(err)
	}
	made := foreign.Session{Agent: "pi", ID: c.Session, Workspace: "/workspace"}
	other, elsewhere, nobody := made, made, foreign.Session{}
	other.ID, elsewhere.Workspace = "other", "/elsewhere"
	for s, want := range map[*foreign.Session]string{&made: "s1 after 00000001", &other: " after ", &elsewhere: " after ", &nobody: " after "} {
		if from, after, err := carry.Origin(ctx, store, *s); err != nil || from+" after "+after != want {
			t.Errorf("%+v continues %s after %s, %v, want %s", s, from, after, err, want)
		}
	}
}

func TestNothingToContinue(t *testing.T) {
	ctx := context.Background()
	store, path := rewound(t)
	if _, err := store.Create(ctx, conversation.Info{ID: "own"}); err != nil {
		t.Fatal(err)
	}
	if _, err := carry.Prepare(ctx, store, foreign.Host{}, "own"); !errors.Is(err, carry.ErrNoSession) {
		t.Errorf("a conversation without an agent: got %v", err)
	}
	if _, err := carry.At(ctx, store, foreign.Host{}, "s1", 0); !errors.Is(err, foreign.ErrCannotCut) {
		t.Errorf("before the first turn: got %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := carry.Prepare(ctx, store, foreign.Host{}, "s1"); !errors.Is(err, foreign.ErrCannotCut) {
		t.Errorf("a session that is gone: got %v", err)
	}
	if info, err := store.Get(ctx, "s1"); err != nil || info.Save != 3 {
		t.Errorf("the conversation was changed: %+v, %v", info, err)
	}
}
