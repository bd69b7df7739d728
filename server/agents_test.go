package server_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/gen/aiserver/v1/aiserverv1connect"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

func text(s string) *agentv1.InteractionUpdate {
	return &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: s}}}
}

func TestFollowAnAgent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	http, base := dial(t, start(t, nil), token).HTTP()
	agents := stetv1connect.NewCloudAgentServiceClient(http, base)
	follow := aiserverv1connect.NewBackgroundComposerServiceClient(http, base)

	if _, err := agents.Create(ctx, &stetv1.CreateAgentRequest{Id: "a1", Name: "fix the tests"}); err != nil {
		t.Fatal(err)
	}
	_, err := agents.Create(ctx, &stetv1.CreateAgentRequest{Id: "a1"})
	if connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Errorf("creating it again: %v", err)
	}
	stream, err := follow.StreamConversation(ctx, &aiserverv1.StreamConversationRequest{BcId: "a1"})
	if err != nil {
		t.Fatal(err)
	}
	var last string
	for i, word := range []string{"one", "two", "three"} {
		res, err := agents.AppendUpdate(ctx, &stetv1.AppendUpdateRequest{Id: "a1", Updates: []*agentv1.InteractionUpdate{text(word)}})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			last = res.GetOffsetKey()
		}
	}
	var got []string
	for len(got) < 3 && stream.Receive() {
		if u := stream.Msg().GetInteractionUpdateWithOffset(); u != nil {
			got = append(got, u.GetInteractionUpdate().GetTextDelta().GetText())
		}
	}
	if len(got) != 3 || got[0] != "one" || got[2] != "three" {
		t.Fatalf("followed %q, %v", got, stream.Err())
	}
	stream.Close()

	resumed, err := follow.StreamConversation(ctx, &aiserverv1.StreamConversationRequest{BcId: "a1", OffsetKey: &last})
	if err != nil {
		t.Fatal(err)
	}
	defer resumed.Close()
	for resumed.Receive() {
		if u := resumed.Msg().GetInteractionUpdateWithOffset(); u != nil {
			if got := u.GetInteractionUpdate().GetTextDelta().GetText(); got != "two" {
				t.Errorf("resumed after the first update with %q, want two", got)
			}
			break
		}
	}
	_, err = follow.GetLatestAgentConversationState(ctx, &aiserverv1.GetLatestAgentConversationStateRequest{BcId: "none"})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("state of a missing agent: %v", err)
	}
}

func TestSavesOverTheWire(t *testing.T) {
	ctx := t.Context()
	http, base := dial(t, start(t, nil), token).HTTP()
	conversations := stetv1connect.NewConversationServiceClient(http, base)
	made, err := conversations.Create(ctx, &stetv1.CreateConversationRequest{Title: "over the wire"})
	if err != nil {
		t.Fatal(err)
	}
	id, epoch := made.GetConversation().GetId(), made.GetConversation().GetEpoch()
	inline := func(texts ...string) *stetv1.SaveConversationRequest {
		state := &agentv1.ConversationState{}
		for _, s := range texts {
			state.Turns = append(state.Turns, &agentv1.ConversationTurn{Turn: &agentv1.ConversationTurn_AgentConversationTurn{
				AgentConversationTurn: &agentv1.AgentConversationTurn{UserMessage: &agentv1.UserMessage{Text: s, MessageId: s}},
			}})
		}
		return &stetv1.SaveConversationRequest{Id: id, Epoch: epoch, State: &stetv1.SaveConversationRequest_Inline{Inline: state}}
	}
	if _, err := conversations.Save(ctx, inline("hello")); err != nil {
		t.Fatal(err)
	}
	saved, err := conversations.Save(ctx, inline("hello", "again"))
	if err != nil || saved.GetSave().GetTurns() != 2 {
		t.Fatalf("second save: %v, %v", saved, err)
	}
	transcript, err := conversations.Transcript(ctx, &stetv1.TranscriptRequest{Id: id})
	if err != nil || len(transcript.GetMessages()) != 2 || transcript.GetMessages()[1].GetText() != "again" {
		t.Errorf("transcript: %v, %v", transcript, err)
	}
	found, err := conversations.Search(ctx, &stetv1.SearchRequest{Query: "again"})
	if err != nil || len(found.GetHits()) != 1 || found.GetHits()[0].GetConversation() != id {
		t.Errorf("search: %v, %v", found, err)
	}
	if _, err := conversations.Search(ctx, &stetv1.SearchRequest{}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("search for nothing: %v", err)
	}
	root, err := conversations.Inspect(ctx, &stetv1.InspectRequest{Id: saved.GetSave().GetRoot()})
	if err != nil || len(root.GetFields()) != 2 || root.GetFields()[0].GetRefKind() != "turn" {
		t.Errorf("inspect: %v, %v", root, err)
	}
	// Another writer takes over; the first one is told.
	other := inline("hello", "again", "other")
	other.Epoch = 0
	if _, err := conversations.Save(ctx, other); err != nil {
		t.Fatal(err)
	}
	_, err = conversations.Save(ctx, inline("hello", "again", "stale"))
	if connect.CodeOf(err) != connect.CodeAborted {
		t.Errorf("save of a stale writer: %v, want aborted", err)
	}
	history, err := conversations.History(ctx, &stetv1.ConversationHistoryRequest{Id: id, Page: &stetv1.Page{Limit: 2}})
	if err != nil || len(history.GetSaves()) != 2 || history.GetNextCursor() == "" {
		t.Errorf("history: %v, %v", history, err)
	}
	export, err := conversations.Export(ctx, &stetv1.ExportConversationRequest{Id: id, Format: "md"})
	if err != nil {
		t.Fatal(err)
	}
	var exported []byte
	for export.Receive() {
		exported = append(exported, export.Msg().GetChunk()...)
	}
	if err := export.Err(); err != nil || len(exported) == 0 {
		t.Errorf("export: %d bytes, %v", len(exported), err)
	}
	if _, err := conversations.Delete(ctx, &stetv1.DeleteConversationRequest{Id: id}); err != nil {
		t.Error(err)
	}
	_, err = conversations.Get(ctx, &stetv1.GetConversationRequest{Id: id})
	var wire *connect.Error
	if !errors.As(err, &wire) || wire.Code() != connect.CodeNotFound {
		t.Errorf("after the deletion: %v", err)
	}
}

// A blob that is too large for an answer is refused without being read into memory.
func TestLargeBlobsOfAgentsAreRefused(t *testing.T) {
	ctx := t.Context()
	c, base := dial(t, start(t, nil), token).HTTP()
	const size = 64 << 20
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	large := blob.New(data)
	store := dial(t, base, token)
	if err := store.Blobs().Put(ctx, large); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Agents().Create(ctx, "a1", "", ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Agents().SaveState(ctx, "a1", &aiserverv1.CloudAgentState{Summary: large.ID.Bytes()}); err != nil {
		t.Fatal(err)
	}
	follow := aiserverv1connect.NewBackgroundComposerServiceClient(c, base)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := follow.GetBlobForAgentKV(ctx, &aiserverv1.GetBlobForAgentKVRequest{BcId: "a1", BlobId: large.ID.Bytes()})
	runtime.ReadMemStats(&after)
	if connect.CodeOf(err) != connect.CodeResourceExhausted || !strings.Contains(err.Error(), "BlobService/Open") {
		t.Errorf("got %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > size/2 {
		t.Errorf("the refusal took %d bytes of memory for a blob of %d", took, size)
	}
}
