package server_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/client"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server"
)

// saveOf is a request to save a conversation of one turn, at a message of the
// same name.
func saveOf(id, text string, epoch uint64) *stetv1.SaveConversationRequest {
	state := &agentv1.ConversationState{Turns: []*agentv1.ConversationTurn{{Turn: &agentv1.ConversationTurn_AgentConversationTurn{
		AgentConversationTurn: &agentv1.AgentConversationTurn{UserMessage: &agentv1.UserMessage{Text: text, MessageId: text}},
	}}}}
	return &stetv1.SaveConversationRequest{Id: id, Epoch: epoch, MessageId: text, State: &stetv1.SaveConversationRequest_Inline{Inline: state}}
}

func TestSavesAtTheSameTimeSaveTheirOwn(t *testing.T) {
	c := dial(t, start(t, nil), token)
	conv := call(t, c.Conversations().Create, &stetv1.CreateConversationRequest{Title: "busy"}).GetConversation()
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			if _, err := c.Conversations().Save(t.Context(), connect.NewRequest(saveOf(conv.GetId(), fmt.Sprintf("m%d", i), conv.GetEpoch()))); err != nil {
				t.Errorf("save %d: %v", i, err)
			}
		})
	}
	calls.Wait()
	saves := call(t, c.Conversations().History, &stetv1.ConversationHistoryRequest{Id: conv.GetId()}).GetSaves()
	if len(saves) != 40 {
		t.Errorf("%d saves, want 40", len(saves))
	}
	for _, save := range saves {
		messages := call(t, c.Conversations().Transcript, &stetv1.TranscriptRequest{Root: save.GetRoot()}).GetMessages()
		if got := messages[0].GetText(); got != save.GetMessageId() {
			t.Errorf("save %d at message %s has the state of %s", save.GetSeq(), save.GetMessageId(), got)
		}
	}
}

func TestForksCanBeSavedAtOnce(t *testing.T) {
	c := dial(t, start(t, nil), token)
	conv := call(t, c.Conversations().Create, &stetv1.CreateConversationRequest{Title: "one"}).GetConversation()
	call(t, c.Conversations().Save, saveOf(conv.GetId(), "m1", conv.GetEpoch()))
	fork := call(t, c.Conversations().Fork, &stetv1.ForkConversationRequest{Id: conv.GetId(), Seq: 1}).GetConversation()
	if fork.GetEpoch() == 0 {
		t.Fatal("the fork has no epoch")
	}
	if got := call(t, c.Conversations().Save, saveOf(fork.GetId(), "m2", fork.GetEpoch())).GetEpoch(); got != fork.GetEpoch() {
		t.Errorf("epoch %d, want %d", got, fork.GetEpoch())
	}
}

// A writer that others took over from learns so, on a server that knows nothing
// of it yet, and takes over nothing.
func TestStaleWritersDisturbNobody(t *testing.T) {
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	fresh := func() *client.Client { return dial(t, serveDB(t, db, &server.Options{Token: token}), token) }
	first := fresh().Conversations()
	conv := call(t, first.Create, &stetv1.CreateConversationRequest{Title: "two writers"}).GetConversation()
	newest := call(t, first.Save, saveOf(conv.GetId(), "m1", 0)).GetEpoch()
	second := fresh().Conversations()
	refuse(t, second.Save, saveOf(conv.GetId(), "m2", conv.GetEpoch()), connect.CodeAborted)
	refuse(t, second.Save, saveOf(conv.GetId(), "m2", newest+7), connect.CodeAborted)
	if got := call(t, first.Save, saveOf(conv.GetId(), "m3", newest)).GetEpoch(); got != newest {
		t.Errorf("epoch %d, want %d", got, newest)
	}
	third := fresh().Conversations()
	if got := call(t, third.Save, saveOf(conv.GetId(), "m4", newest)).GetEpoch(); got != newest+1 {
		t.Errorf("epoch %d after a new start, want %d", got, newest+1)
	}
}

// A lost root is data loss in every call that reads the state, and a complete new state is
// taken. Nothing else is lost by it.
func TestLostRoot(t *testing.T) {
	ctx := t.Context()
	db, err := stet.Open(ctx, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	serve := func() *client.Client { return dial(t, serveDB(t, db, &server.Options{Token: token}), token) }
	c := serve()
	conv := call(t, c.Conversations().Create, &stetv1.CreateConversationRequest{Title: "lost"}).GetConversation()
	saved := call(t, c.Conversations().Save, saveOf(conv.GetId(), "m1", conv.GetEpoch())).GetSave()
	gen, err := db.Engine().Blobs().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lost := func(id blob.ID) bool { return bytes.Equal(id.Bytes(), saved.GetRoot()) }
	if _, err := db.Engine().Blobs().Sweep(ctx, gen, blob.SweepOptions{Live: func(id blob.ID) bool { return !lost(id) }}); err != nil {
		t.Fatal(err)
	}
	dir := db.Engine().Dir()
	if err := db.Close(); err != nil { // it has the state in memory
		t.Fatal(err)
	}
	if db, err = stet.Open(ctx, dir, nil); err != nil {
		t.Fatal(err)
	}
	c = serve()
	id := conv.GetId()
	refuse(t, c.Conversations().Get, &stetv1.GetConversationRequest{Id: id, WithState: true}, connect.CodeDataLoss)
	refuse(t, c.Conversations().Fork, &stetv1.ForkConversationRequest{Id: id, Seq: 1}, connect.CodeDataLoss)
	refuse(t, c.Conversations().Transcript, &stetv1.TranscriptRequest{Id: id}, connect.CodeDataLoss)
	if got := call(t, c.Conversations().Get, &stetv1.GetConversationRequest{Id: id}).GetConversation().GetTitle(); got != "lost" {
		t.Errorf("title %q", got)
	}
	call(t, c.Conversations().Save, saveOf(id, "m2", 0))
	messages := call(t, c.Conversations().Transcript, &stetv1.TranscriptRequest{Id: id}).GetMessages()
	if len(messages) != 1 || messages[0].GetText() != "m2" {
		t.Errorf("the new state has %v", messages)
	}
	if saves := call(t, c.Conversations().History, &stetv1.ConversationHistoryRequest{Id: id}).GetSaves(); len(saves) != 2 {
		t.Errorf("%d saves", len(saves))
	}
}
