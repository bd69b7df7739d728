package cloudagent_test

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// A state of an agent is also the state of the conversation that it works on.
func TestSavingAStateUpdatesTheConversation(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		ctx, s := t.Context(), b.store()
		talks := conversation.New(b.blobs, b.rows, nil)
		open := must[*conversation.Conversation](t)(talks.Create(ctx, conversation.Info{ID: "talk", Title: "one"}))
		must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Conversation: "talk", Status: running}))
		for turns := 1; turns <= 3; turns++ {
			state, blobs := stateOf(turns)
			must[cloudagent.Saved](t)(s.SaveState(ctx, "a", state, blobs, nil))
			info := must[conversation.Info](t)(talks.Get(ctx, "talk"))
			if info.Turns != uint64(turns) || info.Save != uint64(turns) {
				t.Errorf("after %d turns the conversation has %d, in save %d", turns, info.Turns, info.Save)
			}
			got := must[*conversation.State](t)(talks.Hydrate(ctx, "talk", nil))
			structure, err := got.Structure()
			if err != nil || !proto.Equal(structure, state.ConversationState) {
				t.Errorf("the conversation is %v, %v", structure, err)
			}
		}
		// The same state again is no new save of the conversation.
		state, blobs := stateOf(3)
		state.BaseBranch = proto.String("other")
		must[cloudagent.Saved](t)(s.SaveState(ctx, "a", state, blobs, nil))
		if info := must[conversation.Info](t)(talks.Get(ctx, "talk")); info.Save != 3 {
			t.Errorf("an unchanged conversation has save %d, want 3", info.Save)
		}
		// A writer that was there before has missed something, and is told so.
		if err := open.AppendPrompt(ctx, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := open.Save(ctx, nil); !errors.Is(err, conversation.ErrStale) {
			t.Errorf("a writer from before saved: %v", err)
		}
		if err := talks.Delete(ctx, "talk", nil); err != nil {
			t.Fatal(err)
		}
		state, blobs = stateOf(4)
		must[cloudagent.Saved](t)(s.SaveState(ctx, "a", state, blobs, nil)) // the agent goes on without it
	})
}

func TestAnAgentNeedsItsConversation(t *testing.T) {
	ctx, b := t.Context(), memory()
	if _, err := b.store().Create(ctx, cloudagent.Spec{ID: "a", Conversation: "none"}); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("create with a missing conversation: %v", err)
	}
	if _, err := b.store().Get(ctx, "a"); !errors.Is(err, cloudagent.ErrNotFound) {
		t.Errorf("the agent is there: %v", err)
	}
}

func TestLatestHasTheLastInteraction(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	at := must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, text("one")))
	state, blobs := stateOf(2)
	state.LastInteractionUpdateOffsetKey = at.String()
	state.UserFacingErrorDetails = &aiserverv1.CloudAgentErrorDetails{ErrorMessage: "no credit", ErrorCode: "402"}
	saved := must[cloudagent.Saved](t)(s.SaveState(ctx, "a", state, blobs, nil))
	got := must[cloudagent.Latest](t)(s.Latest(ctx, "a"))
	if got.LastInteraction != at.String() || len(got.Conversation.GetTurns()) != 2 || got.Agent.State != saved.State {
		t.Errorf("latest is %+v", got)
	}
	if p := got.Agent.Properties; p.LastInteraction != at.String() || p.ErrorMessage != "no credit" || p.ErrorCode != "402" {
		t.Errorf("properties are %+v", p)
	}
}

// The offset that another program had for an imported agent stands for the beginning of
// what is here, also after the agent went on.
func TestAForeignOffsetMeansTheBeginning(t *testing.T) {
	ctx, b := t.Context(), memory()
	const foreign = "1755000000000-3"
	state, blobs := stateOf(1)
	s := b.store()
	if err := s.StorePrefetchedBlobs(ctx, append(blobs, wireBlob(string(marshal(state))))...); err != nil {
		t.Fatal(err)
	}
	value := must[[]byte](t)(cloudagent.EncodeMetadata(cloudagent.Metadata{State: idOf(marshal(state)), OffsetKey: foreign, Status: running}))
	if err := b.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: keyspace.AgentMetadata("a"), Value: value}}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := take(t, s, "a", 2, &cloudagent.StreamOptions{After: foreign})
		if got[0].GetInitialState() == nil {
			t.Errorf("the stream begins with %s", describe(got[0]))
		}
		must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, text("more")))
	}
	for _, err := range s.Stream(ctx, "a", &cloudagent.StreamOptions{After: "1755000000000-4"}) {
		if !errors.Is(err, cloudagent.ErrInvalidOffset) {
			t.Errorf("another foreign offset: %v", err)
		}
		break
	}
}

func TestEndedAgentsTakeNothing(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	for status, want := range map[cloudagent.Status]error{cloudagent.StatusArchived: cloudagent.ErrArchived, cloudagent.StatusExpired: cloudagent.ErrExpired} {
		id := status.String()
		must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: id, Status: running}))
		must[cloudagent.Offset](t)(s.SetStatus(ctx, id, status, nil))
		if _, err := s.AppendUpdate(ctx, id, nil, text("late")); !errors.Is(err, want) {
			t.Errorf("append: %v, want %v", err, want)
		}
		state, blobs := stateOf(1)
		if _, err := s.SaveState(ctx, id, state, blobs, nil); !errors.Is(err, want) {
			t.Errorf("save: %v, want %v", err, want)
		}
		for _, unknown := range []cloudagent.Status{0, 99, -1} {
			if _, err := s.SetStatus(ctx, id, unknown, nil); !errors.Is(err, cloudagent.ErrInvalid) {
				t.Errorf("status %d: %v", unknown, err)
			}
		}
		must[cloudagent.Offset](t)(s.SetStatus(ctx, id, running, nil))
		must[cloudagent.Offset](t)(s.AppendUpdate(ctx, id, nil, text("again")))
	}
}

// A state that does not fit into a message is saved by the id of its blob, streamed
// without its bytes, and fetched.
func TestLargeStates(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	state, blobs := stateOf(1)
	state.Commits = []*aiserverv1.BackgroundComposerCommit{{}}
	state.StartingCommit = proto.String(string(bytes.Repeat([]byte("x"), 5<<20)))
	whole := wireBlob(string(marshal(state)))
	if err := s.StorePrefetchedBlobs(ctx, append(blobs, whole)...); err != nil {
		t.Fatal(err)
	}
	saved := must[cloudagent.Saved](t)(s.SaveStateBlob(ctx, "a", idOf(whole.Value), nil, nil))
	if err := s.Archive(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	got := take(t, s, "a", 1, nil)[0].GetInitialState()
	if got.GetCloudAgentState() != nil || !bytes.Equal(got.GetBlobId(), saved.State.Bytes()) {
		t.Errorf("a large state came with %d bytes", proto.Size(got))
	}
	var missing *kv.MissingBlobsError
	if _, err := s.SaveStateBlob(ctx, "a", idOf([]byte("no such state")), nil, nil); !errors.As(err, &missing) {
		t.Errorf("a state that is not stored: %v", err)
	}
	for e, err := range cloudagent.Follow(ctx, followOptions(s, "a")) {
		if err != nil {
			t.Fatal(err)
		}
		if e.StateID == saved.State && !proto.Equal(e.State, state) {
			t.Error("the follower has another state")
		}
	}
}
