package server_test

import (
	"bytes"
	"errors"
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
			if _, err := c.Conversations().Save(t.Context(), saveOf(conv.GetId(), fmt.Sprintf("m%d", i), conv.GetEpoch())); err != nil {
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

// A caller who names a root that was never stored, or that is no state, made a mistake.
// Nothing is lost.
func TestNamedRootsAreNotLost(t *testing.T) {
	c := dial(t, start(t, nil), token)
	conv := call(t, c.Conversations().Create, &stetv1.CreateConversationRequest{Title: "named"}).GetConversation()
	words := blob.New([]byte("no state"))
	if err := c.Blobs().Put(t.Context(), words); err != nil {
		t.Fatal(err)
	}
	never := make([]byte, blob.IDSize)
	save := func(root []byte) *stetv1.SaveConversationRequest {
		return &stetv1.SaveConversationRequest{Id: conv.GetId(), State: &stetv1.SaveConversationRequest_Root{Root: root}}
	}
	_, err := c.Conversations().Save(t.Context(), save(never))
	var wire *connect.Error
	if !errors.As(err, &wire) || wire.Code() != connect.CodeFailedPrecondition || len(wire.Details()) != 1 {
		t.Fatalf("save: %v", err)
	}
	detail, err := wire.Details()[0].Value()
	if missing, ok := detail.(*stetv1.MissingBlobs); err != nil || !ok || len(missing.GetIds()) != 1 || !bytes.Equal(missing.GetIds()[0], never) {
		t.Errorf("save: the detail is %v, %v", detail, err)
	}
	refuse(t, c.Conversations().Save, save(words.ID.Bytes()), connect.CodeInvalidArgument)
	refuse(t, c.Conversations().Transcript, &stetv1.TranscriptRequest{Id: conv.GetId(), Root: never}, connect.CodeNotFound)
	refuse(t, c.Conversations().Transcript, &stetv1.TranscriptRequest{Id: conv.GetId(), Root: words.ID.Bytes()}, connect.CodeInvalidArgument)
}
