package server_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/client"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/gen/aiserver/v1/aiserverv1connect"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/internal/attempt"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/server"
	"github.com/stet-dev/stet/transfer"
)

// lostBench serves a store in which the root of a conversation is lost. A checkpoint, c1,
// names it.
type lostBench struct {
	id, dir string
	root    []byte
	state   blob.ID // of the agent a1, lost as well
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
	if err := os.WriteFile(filepath.Join(b.dir, "kept"), []byte("words"), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func() { b.c = dial(t, serveDB(t, db, &server.Options{Token: token}), token) }
	serve()
	conv := call(t, b.c.Conversations().Create, &stetv1.CreateConversationRequest{Title: "lost", Workspace: b.dir}).GetConversation()
	b.id = conv.GetId()
	b.root = call(t, b.c.Conversations().Save, saveOf(b.id, "m1", conv.GetEpoch())).GetSave().GetRoot()
	call(t, b.c.Checkpoints().Create, &stetv1.CreateCheckpointRequest{Workspace: b.dir, Conversation: b.id, Turn: 1, Side: checkpoint.After})
	b.addAgent(t)
	b.addAttempt(t, db)
	gen, err := db.Engine().Blobs().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	live := func(id blob.ID) bool { return !bytes.Equal(id.Bytes(), b.root) && id != b.state }
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

// addAgent adds an agent with a state.
func (b *lostBench) addAgent(t *testing.T) {
	t.Helper()
	agents := b.c.Agents()
	if _, err := agents.Create(t.Context(), "a1", "", ""); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.state, _, err = agents.SaveState(t.Context(), "a1", &aiserverv1.CloudAgentState{BaseBranch: proto.String("main")}); err != nil {
		t.Fatal(err)
	}
}

// addAttempt adds an attempt whose words are those of the conversation.
func (b *lostBench) addAttempt(t *testing.T, db *stet.DB) {
	t.Helper()
	from, err := db.Checkpoints().Resolve(t.Context(), checkpoint.WorkspaceID(b.dir), "", "c1")
	if err != nil {
		t.Fatal(err)
	}
	keep := attempt.Keeper{Checkpoints: db.Checkpoints(), Conversations: db.Conversations()}
	run, err := attempt.Begin(t.Context(), keep, attempt.Plan{Try: "abc", Number: 1, Base: from, Workspace: b.dir, Command: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.End(t.Context(), attempt.Result{Tree: from.Tree, Words: b.id}); err != nil {
		t.Fatal(err)
	}
}

// drained returns the error of a stream.
func drained[T any](stream *connect.ServerStreamForClient[T], err error) error {
	if err != nil {
		return err
	}
	for stream.Receive() {
	}
	return errors.Join(stream.Err(), stream.Close())
}

// first returns the error of a stream that does not end before its first response.
func first[T any](stream *connect.ServerStreamForClient[T], err error) error {
	if err == nil && !stream.Receive() {
		err = stream.Err()
	}
	if stream != nil {
		err = errors.Join(err, stream.Close())
	}
	return err
}

// ask makes a call and returns its error.
func ask[Req, Res any](f func(context.Context, *Req) (*Res, error), m *Req) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := f(ctx, m)
		return err
	}
}

// withoutAState are the services and calls that cannot meet a lost state, with the reason.
// A new call is tried below, or listed here.
var withoutAState = map[string]string{
	"Blob": "contents by their ids", "Row": "rows", "Document": "what programs keep, without a conversation", "Thread": "graphs, which have no conversation", "Agent": "the client of a run has the state: TestALostStateIsDataLoss of package agentrun",
	"Store/Info": "no states", "Store/Stats": "no states", "Store/Collect": "keeps what is there", "Store/Fsck": "reports all damage",
	"Conversation/Create": "there is none yet", "Conversation/Delete": "needs none", "Conversation/Save": "TestWorkGoesOnWithoutALostRoot",
	"Transfer/Upload":   "brings its own",
	"Checkpoint/Create": "TestWorkGoesOnWithoutALostRoot", "Checkpoint/PlanRewind": "TestWorkGoesOnWithoutALostRoot",
	"Checkpoint/Rewind": "needs a plan", "Checkpoint/Undo": "needs a rewind", "Checkpoint/Redo": "needs an undo", "Checkpoint/Unpin": "needs none",
	"CloudAgent/Create": "there is none yet", "CloudAgent/SaveState": "brings its own", "CloudAgent/Archive": "needs none",
	"CloudAgent/SetSnapshot": "machines", "CloudAgent/Snapshot": "machines",
}

// readsAState are the calls that need the state of the conversation or of the agent.
func (b *lostBench) readsAState() map[string]func(context.Context) error {
	conversations := b.c.Conversations()
	http, base := b.c.HTTP()
	follow := aiserverv1connect.NewBackgroundComposerServiceClient(http, base)
	mem := memblob.New()
	to := transfer.Side{Blobs: mem, Rows: memkv.New(mem)}
	return map[string]func(context.Context) error{
		"Conversation/Get":        ask(conversations.Get, &stetv1.GetConversationRequest{Id: b.id, WithState: true}),
		"Conversation/Fork":       ask(conversations.Fork, &stetv1.ForkConversationRequest{Id: b.id, Seq: 1}),
		"Conversation/Transcript": ask(conversations.Transcript, &stetv1.TranscriptRequest{Id: b.id}),
		"Conversation/Export": func(ctx context.Context) error {
			return drained(conversations.Export(ctx, &stetv1.ExportConversationRequest{Id: b.id, Format: "md"}))
		},
		"Transfer/Download": func(ctx context.Context) error {
			_, err := b.c.Download(ctx, b.id, to, false, nil)
			return err
		},
		"BackgroundComposer/StreamConversation": func(ctx context.Context) error {
			return drained(follow.StreamConversation(ctx, &aiserverv1.StreamConversationRequest{BcId: "a1"}))
		},
		"BackgroundComposer/GetLatestAgentConversationState": ask(follow.GetLatestAgentConversationState, &aiserverv1.GetLatestAgentConversationStateRequest{BcId: "a1"}),
		"BackgroundComposer/GetBlobForAgentKV":               ask(follow.GetBlobForAgentKV, &aiserverv1.GetBlobForAgentKVRequest{BcId: "a1", BlobId: b.state.Bytes()}),
	}
}

// needsNoState are the calls that work without it.
func (b *lostBench) needsNoState() map[string]func(context.Context) error {
	conversations, checkpoints := b.c.Conversations(), b.c.Checkpoints()
	http, base := b.c.HTTP()
	agents := stetv1connect.NewCloudAgentServiceClient(http, base)
	return map[string]func(context.Context) error{
		"Conversation/Get":      ask(conversations.Get, &stetv1.GetConversationRequest{Id: b.id}),
		"Conversation/List":     ask(conversations.List, &stetv1.ListConversationsRequest{}),
		"Conversation/History":  ask(conversations.History, &stetv1.ConversationHistoryRequest{Id: b.id}),
		"Conversation/SetTitle": ask(conversations.SetTitle, &stetv1.SetConversationTitleRequest{Id: b.id, Title: "lost"}),
		"Checkpoint/List":       ask(checkpoints.List, &stetv1.ListCheckpointsRequest{Workspace: b.dir}),
		"Checkpoint/Get":        ask(checkpoints.Get, &stetv1.GetCheckpointRequest{Workspace: b.dir, Ref: "c1"}),
		"Checkpoint/Files":      ask(checkpoints.Files, &stetv1.CheckpointFilesRequest{Workspace: b.dir, Ref: "c1"}),
		"Checkpoint/File":       ask(checkpoints.File, &stetv1.CheckpointFileRequest{Workspace: b.dir, Ref: "c1", Path: "kept"}),
		"Checkpoint/Diff":       ask(checkpoints.Diff, &stetv1.DiffRequest{Workspace: b.dir, From: "c1", To: "@"}),
		"Checkpoint/Blame":      ask(checkpoints.Blame, &stetv1.BlameRequest{Workspace: b.dir, Ref: "c1", Path: "kept"}),
		"Checkpoint/Pin":        ask(checkpoints.Pin, &stetv1.PinRequest{Workspace: b.dir, Name: "works", Ref: "c1"}),
		"Checkpoint/ListPins":   ask(checkpoints.ListPins, &stetv1.ListPinsRequest{}),
		"Checkpoint/Operations": ask(checkpoints.Operations, &stetv1.OperationsRequest{Workspace: b.dir}),
		"Page/Overview":         ask(b.page.Overview, &stetv1.OverviewRequest{}),
		"Page/Attempts":         ask(b.page.Attempts, &stetv1.AttemptsRequest{Try: "abc"}),
		"Page/Timeline":         ask(b.page.Timeline, &stetv1.TimelineRequest{Conversation: b.id}),
		"CloudAgent/Get":        ask(agents.Get, &stetv1.GetAgentRequest{Id: "a1"}),
		"CloudAgent/List":       ask(agents.List, &stetv1.ListAgentsRequest{}),
		"CloudAgent/Watch": func(ctx context.Context) error {
			return first(agents.Watch(ctx, &stetv1.WatchAgentRequest{Id: "a1"}))
		},
		"CloudAgent/AppendUpdate": func(ctx context.Context) error {
			_, err := b.c.Agents().Append(ctx, "a1", "", text("on"))
			return err
		},
		"CloudAgent/SetStatus": func(ctx context.Context) error {
			_, err := b.c.Agents().SetStatus(ctx, "a1", aiserverv1.CloudAgentWorkflowStatus_CLOUD_AGENT_WORKFLOW_STATUS_RUNNING)
			return err
		},
	}
}

// A lost state is data loss, with its source, in every call that reads it, and never "not
// found". Calls that do not need the state work.
func TestLostRootInEveryCall(t *testing.T) {
	b := newLostBench(t)
	root, _ := blob.IDFromBytes(b.root)
	reads, works := b.readsAState(), b.needsNoState()
	for name, read := range reads {
		err := read(t.Context())
		if code := connect.CodeOf(err); code != connect.CodeDataLoss {
			t.Errorf("%s: %v: %v", name, code, err)
			continue
		}
		text := err.Error()
		if !slices.ContainsFunc([]string{b.id, root.Short(), b.state.Short(), "a1"}, func(source string) bool { return strings.Contains(text, source) }) {
			t.Errorf("%s does not name the source: %v", name, err)
		}
	}
	for name, work := range works {
		if err := work(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.showsTheLoss(t)
	for _, call := range server.Procedures() {
		service, method, _ := strings.Cut(strings.Replace(call[strings.LastIndex(call, ".")+1:], "Service/", "/", 1), "/")
		name := service + "/" + method
		_, whole := withoutAState[service]
		_, one := withoutAState[name]
		if reads[name] == nil && works[name] == nil && !whole && !one && !slices.Contains(shown, name) {
			t.Errorf("%s is not tried with a lost state", name)
		}
	}
}

// shown are the calls that answer and show the loss.
var shown = []string{"Conversation/Search", "Conversation/Inspect", "Page/Graph", "Page/Storage", "Page/Follow"}

// showsTheLoss checks the calls in shown.
func (b *lostBench) showsTheLoss(t *testing.T) {
	t.Helper()
	graph := call(t, b.page.Graph, &stetv1.GraphRequest{Id: b.root})
	if len(graph.GetNodes()) != 1 || graph.GetNodes()[0].GetError() == "" {
		t.Errorf("the graph shows %v", graph)
	}
	if found := call(t, b.c.Conversations().Search, &stetv1.SearchRequest{Query: "words"}); !slices.Contains(found.GetDamaged(), b.id) {
		t.Errorf("the search says that %q are damaged", found.GetDamaged())
	}
	if storage := call(t, b.page.Storage, &stetv1.StorageRequest{}); !strings.Contains(strings.Join(storage.GetDamaged(), "\n"), "missing or damaged") {
		t.Errorf("the storage page says that %q are damaged", storage.GetDamaged())
	}
	// Bytes are asked for by their id, which may never have been stored.
	refuse(t, b.c.Conversations().Inspect, &stetv1.InspectRequest{Id: b.root}, connect.CodeNotFound)
	err := first(b.page.Follow(t.Context(), &stetv1.FollowRequest{Id: "a1"}))
	if code := connect.CodeOf(err); err != nil && code != connect.CodeDataLoss {
		t.Errorf("the page follows: %v", err)
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
