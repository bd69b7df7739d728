package agenttools_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/agenttools"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/sqlite"
)

// fixture is a store and a workspace in which sessions work.
type fixture struct {
	t          *testing.T
	store, dir string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t: t, store: filepath.Join(t.TempDir(), "store"), dir: dir}
}

// open is the Opener of the tests.
func (f *fixture) open(ctx context.Context, create bool, use func(*agenttools.Place) error) error {
	db, err := stet.Open(ctx, f.store, &stet.Options{SQLite: &sqlite.Options{MustExist: !create}})
	if err != nil {
		return err
	}
	space, err := db.Checkpoints().Open(ctx, f.dir)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	return errors.Join(use(&agenttools.Place{DB: db, Checkpoints: db.Checkpoints(), Space: space}), space.Close(), db.Close())
}

// tools are those of a session.
func (f *fixture) tools(session string) *agenttools.Tools {
	return agenttools.New(f.open, &agenttools.Options{Session: session})
}

func (f *fixture) do(fn func(ctx context.Context, p *agenttools.Place) error) {
	f.t.Helper()
	ctx := context.Background()
	if err := f.open(ctx, true, func(p *agenttools.Place) error { return fn(ctx, p) }); err != nil {
		f.t.Fatal(err)
	}
}

// begin begins a turn of a session, as its hook does.
func (f *fixture) begin(session string, turn uint64, processes ...checkpoint.Process) {
	f.t.Helper()
	f.do(func(ctx context.Context, p *agenttools.Place) error {
		_, err := p.DB.Conversations().Create(ctx, conversation.Info{ID: session, Agent: "claude-code", Title: "work of " + session})
		if err != nil && !errors.Is(err, conversation.ErrExists) {
			return err
		}
		_, err = p.Space.Checkpoint(ctx, checkpoint.Request{
			Conversation: session, Turn: turn, Side: checkpoint.Before, Author: "claude-code", Auto: true,
			Holder: checkpoint.Holder{ID: session, Processes: processes},
		})
		return err
	})
}

// end ends a turn: its words are copied, then the checkpoint is taken.
func (f *fixture) end(session string, turn uint64, prompt, reply string) {
	f.t.Helper()
	f.do(func(ctx context.Context, p *agenttools.Place) error {
		c, err := p.DB.Conversations().Open(ctx, session)
		if err != nil {
			return err
		}
		words, err := conversation.NewTurn(&agentv1.UserMessage{Text: prompt}, &agentv1.ConversationStep{
			Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: reply}},
		})
		if err != nil {
			return err
		}
		if err := c.AppendTurn(ctx, words); err != nil {
			return err
		}
		saved, err := c.Save(ctx, &conversation.SaveOptions{Turn: &conversation.TurnDetails{Model: "opus-5", Input: 1200, Output: 100}})
		if err != nil {
			return err
		}
		_, err = p.Space.Checkpoint(ctx, checkpoint.Request{
			Conversation: session, Root: saved.Root, Turn: turn, Side: checkpoint.After, Author: "claude-code", Auto: true,
			Holder: checkpoint.Holder{ID: session},
		})
		return err
	})
}

func (f *fixture) write(name, content string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) remove(name string) {
	f.t.Helper()
	if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
		f.t.Fatal(err)
	}
}

// files returns the contents of all files.
func (f *fixture) files() map[string]string {
	f.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(f.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(f.dir, path)
		out[rel] = string(data)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// said fails unless a call was answered with all of the texts.
func said(t *testing.T, text string, err error, want ...string) {
	t.Helper()
	if err != nil {
		t.Fatalf("the tool failed: %v", err)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the answer has no %q:\n%s", w, text)
		}
	}
}

// failed fails unless a call failed with all of the texts.
func failed(t *testing.T, text string, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("the tool did not fail:\n%s", text)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error has no %q: %v", w, err)
		}
	}
}

var tokenInText = regexp.MustCompile(`token="([0-9a-f]+)"`)

func tokenOf(t *testing.T, text string) string {
	t.Helper()
	found := tokenInText.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("the answer has no token:\n%s", text)
	}
	return found[1]
}
