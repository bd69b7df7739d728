package server_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/client"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/server"
	"github.com/stet-dev/stet/transfer"
)

// lostBench serves a store in which the root of a conversation is lost. A checkpoint, c1,
// names it.
type lostBench struct {
	id, dir string
	root    []byte
	c       *client.Client
	page    stetv1connect.PageServiceClient
}

func newLostBench(t *testing.T) *lostBench {
	t.Helper()
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	b := &lostBench{dir: t.TempDir()}
	serve := func() { b.c = dial(t, serveDB(t, db, &server.Options{Token: token}), token) }
	serve()
	conv := call(t, b.c.Conversations().Create, &stetv1.CreateConversationRequest{Title: "lost", Workspace: b.dir}).GetConversation()
	b.id = conv.GetId()
	b.root = call(t, b.c.Conversations().Save, saveOf(b.id, "m1", conv.GetEpoch())).GetSave().GetRoot()
	call(t, b.c.Checkpoints().Create, &stetv1.CreateCheckpointRequest{Workspace: b.dir, Conversation: b.id, Turn: 1, Side: checkpoint.After})
	gen, err := db.Engine().Blobs().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	live := func(id blob.ID) bool { return !bytes.Equal(id.Bytes(), b.root) }
	if _, err := db.Engine().Blobs().Sweep(t.Context(), gen, blob.SweepOptions{Live: live}); err != nil {
		t.Fatal(err)
	}
	dir := db.Engine().Dir()
	if err := db.Close(); err != nil { // it has the state in memory
		t.Fatal(err)
	}
	if db, err = stet.Open(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	serve()
	http, base := b.c.HTTP()
	b.page = stetv1connect.NewPageServiceClient(http, base)
	return b
}

// ask makes a call and returns its error.
func ask[Req, Res any](f func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), m *Req) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := f(ctx, connect.NewRequest(m))
		return err
	}
}

// A lost root is data loss, with its source, in every call that reads the state, and never
// "not found". Calls that do not need the state work.
func TestLostRootInEveryCall(t *testing.T) {
	b := newLostBench(t)
	conversations, checkpoints := b.c.Conversations(), b.c.Checkpoints()
	mem := memblob.New()
	to := transfer.Side{Blobs: mem, Rows: memkv.New(mem)}
	reads := map[string]func(context.Context) error{
		"Conversation/Get":        ask(conversations.Get, &stetv1.GetConversationRequest{Id: b.id, WithState: true}),
		"Conversation/Fork":       ask(conversations.Fork, &stetv1.ForkConversationRequest{Id: b.id, Seq: 1}),
		"Conversation/Transcript": ask(conversations.Transcript, &stetv1.TranscriptRequest{Id: b.id}),
		"Conversation/Export": func(ctx context.Context) error {
			stream, err := conversations.Export(ctx, connect.NewRequest(&stetv1.ExportConversationRequest{Id: b.id, Format: "md"}))
			if err != nil {
				return err
			}
			for stream.Receive() {
			}
			return errors.Join(stream.Err(), stream.Close())
		},
		"Transfer/Download": func(ctx context.Context) error {
			_, err := b.c.Download(ctx, b.id, to, false, nil)
			return err
		},
	}
	for name, read := range reads {
		err := read(t.Context())
		if code := connect.CodeOf(err); code != connect.CodeDataLoss {
			t.Errorf("%s: %v: %v", name, code, err)
			continue
		}
		root, _ := blob.IDFromBytes(b.root)
		if text := err.Error(); !strings.Contains(text, b.id) && !strings.Contains(text, root.Short()) {
			t.Errorf("%s does not name the source: %v", name, err)
		}
	}
	works := map[string]func(context.Context) error{
		"Conversation/Get":     ask(conversations.Get, &stetv1.GetConversationRequest{Id: b.id}),
		"Conversation/List":    ask(conversations.List, &stetv1.ListConversationsRequest{}),
		"Conversation/History": ask(conversations.History, &stetv1.ConversationHistoryRequest{Id: b.id}),
		"Checkpoint/List":      ask(checkpoints.List, &stetv1.ListCheckpointsRequest{Workspace: b.dir}),
		"Checkpoint/Get":       ask(checkpoints.Get, &stetv1.GetCheckpointRequest{Workspace: b.dir, Ref: "c1"}),
		"Checkpoint/Files":     ask(checkpoints.Files, &stetv1.CheckpointFilesRequest{Workspace: b.dir, Ref: "c1"}),
		"Page/Overview":        ask(b.page.Overview, &stetv1.OverviewRequest{}),
		"Page/Timeline":        ask(b.page.Timeline, &stetv1.TimelineRequest{Conversation: b.id}),
	}
	for name, work := range works {
		if err := work(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	graph := call(t, b.page.Graph, &stetv1.GraphRequest{Id: b.root})
	if len(graph.GetNodes()) != 1 || graph.GetNodes()[0].GetError() == "" {
		t.Errorf("the graph shows %v", graph)
	}
}

// Files are captured without the lost state, a rewind to it changes nothing, and a complete
// new state is taken.
func TestWorkGoesOnWithoutALostRoot(t *testing.T) {
	b := newLostBench(t)
	conversations, checkpoints := b.c.Conversations(), b.c.Checkpoints()
	file := filepath.Join(b.dir, "a")
	if err := os.WriteFile(file, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	created := call(t, checkpoints.Create, &stetv1.CreateCheckpointRequest{Workspace: b.dir, Conversation: b.id, Turn: 2, Side: checkpoint.After})
	made := created.GetCheckpoint()
	if len(made.GetRoot()) != 0 || made.GetConversation() != b.id || !strings.Contains(created.GetStateLost(), "data loss") {
		t.Errorf("the checkpoint is %v, the loss %q", made, created.GetStateLost())
	}
	refuse(t, checkpoints.PlanRewind, &stetv1.PlanRewindRequest{Workspace: b.dir, Ref: "c1", Files: true, WithConversation: true}, connect.CodeDataLoss)
	if got, err := os.ReadFile(file); err != nil || string(got) != "one" {
		t.Errorf("the file has %q, %v", got, err)
	}
	call(t, conversations.Save, saveOf(b.id, "m2", 0))
	messages := call(t, conversations.Transcript, &stetv1.TranscriptRequest{Id: b.id}).GetMessages()
	if len(messages) != 1 || messages[0].GetText() != "m2" {
		t.Errorf("the new state has %v", messages)
	}
	if saves := call(t, conversations.History, &stetv1.ConversationHistoryRequest{Id: b.id}).GetSaves(); len(saves) != 2 {
		t.Errorf("%d saves", len(saves))
	}
}
