package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/cloudagent"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/gen/aiserver/v1/aiserverv1connect"
)

// sideBySide is how many fetches must have begun before the server of this test answers
// any.
const sideBySide = 16

// holding is a server of one archived agent. It sends a state without its blobs, and
// answers no request for a blob until sideBySide of them have begun.
type holding struct {
	aiserverv1connect.UnimplementedBackgroundComposerServiceHandler
	state   *aiserverv1.CloudAgentState
	blobs   map[blob.ID][]byte
	damaged blob.ID
	enough  chan struct{} // closed when sideBySide requests have begun

	mu    sync.Mutex // guards begun
	begun int
}

func (h *holding) StreamConversation(_ context.Context, req *aiserverv1.StreamConversationRequest, stream *connect.ServerStream[aiserverv1.StreamConversationResponse]) error {
	status := cloudagent.StatusArchived
	ended := &aiserverv1.StreamConversationResponse{Message: &aiserverv1.StreamConversationResponse_WorkflowStatusWithOffset_{
		WorkflowStatusWithOffset: &aiserverv1.StreamConversationResponse_WorkflowStatusWithOffset{WorkflowStatus: status, OffsetKey: "0000000000000001-1"},
	}}
	if req.GetOffsetKey() != "" {
		return stream.Send(ended)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(h.state)
	if err != nil {
		return err
	}
	initial := &aiserverv1.StreamConversationResponse{Message: &aiserverv1.StreamConversationResponse_InitialState_{
		InitialState: &aiserverv1.StreamConversationResponse_InitialState{CloudAgentState: h.state, BlobId: blob.Sum(raw).Bytes(), WorkflowStatus: status},
	}}
	return errors.Join(stream.Send(initial), stream.Send(ended))
}

func (h *holding) GetBlobForAgentKV(ctx context.Context, req *aiserverv1.GetBlobForAgentKVRequest) (*aiserverv1.GetBlobForAgentKVResponse, error) {
	h.mu.Lock()
	if h.begun++; h.begun == sideBySide {
		close(h.enough)
	}
	h.mu.Unlock()
	select {
	case <-h.enough:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	id, err := blob.IDFromBytes(req.GetBlobId())
	if err != nil || id == h.damaged {
		return nil, connect.NewError(connect.CodeDataLoss, fmt.Errorf("blob %s is damaged: %w", id, err))
	}
	return &aiserverv1.GetBlobForAgentKVResponse{BlobData: h.blobs[id]}, nil
}

// A follower fetches blobs side by side: with one after another, a server that answers the
// first only when others have begun would never answer. A blob that is damaged there does
// not end the follower; the event names it.
func TestFollowersFetchSideBySide(t *testing.T) {
	h := &holding{state: &aiserverv1.CloudAgentState{ConversationState: &agentv1.ConversationStateStructure{}}, blobs: make(map[blob.ID][]byte), enough: make(chan struct{})}
	for i := range 2 * sideBySide {
		raw, err := proto.Marshal(&agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{
			AgentConversationTurn: &agentv1.AgentConversationTurnStructure{RequestId: proto.String(fmt.Sprint(i))},
		}})
		if err != nil {
			t.Fatal(err)
		}
		turn := blob.New(raw)
		h.blobs[turn.ID], h.damaged = raw, turn.ID
		h.state.ConversationState.Turns = append(h.state.ConversationState.Turns, turn.ID.Bytes())
	}
	mux := http.NewServeMux()
	mux.Handle(aiserverv1connect.NewBackgroundComposerServiceHandler(h))
	srv := serve(mux)
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // reached only by a follower that waits for ever
	defer cancel()
	cache := blob.Checked(memblob.New())
	var missing []blob.ID
	for e, err := range dial(t, srv.URL, token).Agents().Follow(ctx, "a1", &client.FollowOptions{Cache: cache}) {
		if err != nil {
			t.Fatal(err)
		}
		missing = append(missing, e.Missing...)
	}
	if !slices.Equal(missing, []blob.ID{h.damaged}) {
		t.Errorf("missing are %v, want %v", missing, h.damaged)
	}
	for id, want := range h.blobs {
		if got, err := cache.Get(t.Context(), id); id != h.damaged && (err != nil || string(got) != string(want)) {
			t.Errorf("blob %s: %q, %v", id.Short(), got, err)
		}
	}
}
