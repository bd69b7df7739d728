package cloudagent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/cloudagent"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/sqlite"
)

const (
	running = aiserverv1.CloudAgentWorkflowStatus_CLOUD_AGENT_WORKFLOW_STATUS_RUNNING
	idle    = aiserverv1.CloudAgentWorkflowStatus_CLOUD_AGENT_WORKFLOW_STATUS_IDLE
)

type backend struct {
	blobs blob.Store
	rows  kv.Store
}

func (b backend) store() *cloudagent.Store { return cloudagent.New(b.blobs, b.rows, nil) }

func memory() backend {
	mem := memblob.New()
	return backend{blob.Checked(mem), memkv.New(mem)}
}

func embedded(t *testing.T, dir string) backend {
	t.Helper()
	db, err := sqlite.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return backend{blob.Checked(compressed.New(db.Blobs(), nil)), sealed.New(db.Rows(), nil)}
}

// onBoth runs a test on the reference model and on the embedded store with its
// layers.
func onBoth(t *testing.T, test func(t *testing.T, b backend)) {
	t.Run("memory", func(t *testing.T) { test(t, memory()) })
	t.Run("sqlite", func(t *testing.T) { test(t, embedded(t, t.TempDir())) })
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func text(s string) *agentv1.InteractionUpdate {
	return &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: s}}}
}

func updatesOf(texts ...any) []*agentv1.InteractionUpdate {
	out := make([]*agentv1.InteractionUpdate, len(texts))
	for i, s := range texts {
		out[i] = text(fmt.Sprint(s))
	}
	return out
}

func wireBlob(data string) *aiserverv1.PreFetchedBlob {
	b := blob.New([]byte(data))
	return &aiserverv1.PreFetchedBlob{Id: b.ID.Bytes(), Value: b.Data}
}

func marshal(m proto.Message) []byte {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	return raw
}

// stateOf returns a state with n turns and its blobs.
func stateOf(n int) (*aiserverv1.CloudAgentState, []*aiserverv1.PreFetchedBlob) {
	name, branch := wireBlob("Fixer"), wireBlob("fix/tests")
	blobs := []*aiserverv1.PreFetchedBlob{name, branch}
	state := &aiserverv1.CloudAgentState{
		AgentName: name.Id, BranchName: branch.Id, BaseBranch: proto.String("main"),
		ConversationState: &agentv1.ConversationStateStructure{}, OriginalRequestStartUnixMs: proto.Int64(1700000000000),
		InitialSource: aiserverv1.BackgroundComposerSource_BACKGROUND_COMPOSER_SOURCE_API.Enum(),
	}
	encode := func(m proto.Message) []byte {
		b := wireBlob(string(marshal(m)))
		blobs = append(blobs, b)
		return b.Id
	}
	for i := range n {
		message := encode(&agentv1.UserMessage{Text: fmt.Sprint("turn ", i), MessageId: fmt.Sprint(i)})
		turn := encode(&agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{
			AgentConversationTurn: &agentv1.AgentConversationTurnStructure{UserMessage: message},
		}})
		state.ConversationState.Turns = append(state.ConversationState.Turns, turn)
	}
	return state, blobs
}

// take reads n responses of a stream.
func take(t *testing.T, s *cloudagent.Store, agent string, n int, opts *cloudagent.StreamOptions) []*aiserverv1.StreamConversationResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out []*aiserverv1.StreamConversationResponse
	for m, err := range s.Stream(ctx, agent, opts) {
		if err != nil {
			t.Fatalf("stream after %d responses: %v", len(out), err)
		}
		if out = append(out, m); len(out) == n {
			break
		}
	}
	return out
}

func describe(m *aiserverv1.StreamConversationResponse) string {
	switch v := m.Message.(type) {
	case *aiserverv1.StreamConversationResponse_InitialState_:
		return fmt.Sprintf("initial %d turns %s", len(v.InitialState.GetCloudAgentState().GetConversationState().GetTurns()), v.InitialState.WorkflowStatus)
	case *aiserverv1.StreamConversationResponse_InteractionUpdateWithOffset_:
		return "text " + v.InteractionUpdateWithOffset.InteractionUpdate.GetTextDelta().GetText()
	case *aiserverv1.StreamConversationResponse_CloudAgentStateWithIdAndOffset_:
		return fmt.Sprintf("state %d turns", len(v.CloudAgentStateWithIdAndOffset.CloudAgentState.ConversationState.Turns))
	case *aiserverv1.StreamConversationResponse_WorkflowStatusWithOffset_:
		return "status " + v.WorkflowStatusWithOffset.WorkflowStatus.String()
	}
	return fmt.Sprintf("%T", m.Message)
}

func TestAgentFromItsBeginningToItsEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		ctx, s := t.Context(), b.store()
		agent := must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "bc-1", Name: "one"}))
		if _, err := s.Create(ctx, cloudagent.Spec{ID: "bc-1"}); !errors.Is(err, cloudagent.ErrExists) {
			t.Errorf("second create: %v, want ErrExists", err)
		}
		if agent.Head.Seq != 0 || agent.Status != cloudagent.StatusNotYetStarted {
			t.Errorf("new agent stands at %v with %v", agent.Head, agent.Status)
		}
		must[cloudagent.Offset](t)(s.SetStatus(ctx, "bc-1", running, nil))
		must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "bc-1", nil, text("a"), text("b")))
		state, blobs := stateOf(2)
		saved := must[cloudagent.Saved](t)(s.SaveState(ctx, "bc-1", state, blobs, nil))
		end := must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "bc-1", nil, text("c")))
		if saved.Offset.Seq != 4 || end.Seq != 5 {
			t.Errorf("state at %d, end at %d, want 4 and 5", saved.Offset.Seq, end.Seq)
		}
		// Another handle sees everything: nothing lives in a cache only.
		other := b.store()
		got := must[cloudagent.Agent](t)(other.Get(ctx, "bc-1"))
		if got.Head != end || got.State != saved.State || got.StateAt != saved.Offset || got.Status != running {
			t.Errorf("agent is %+v", got)
		}
		want := cloudagent.Properties{
			AgentName: "Fixer", BranchName: "fix/tests", NumTurns: 2, BaseBranch: "main",
			OriginalRequestStart: time.UnixMilli(1700000000000), InitialSource: aiserverv1.BackgroundComposerSource_BACKGROUND_COMPOSER_SOURCE_API,
		}
		if got.Properties != want {
			t.Errorf("properties are %+v, want %+v", got.Properties, want)
		}
		m := must[cloudagent.Metadata](t)(other.Metadata(ctx, "bc-1"))
		if m.State != saved.State || m.OffsetKey != saved.Offset.String() || m.Status != running {
			t.Errorf("metadata is %+v", m)
		}
		back := must[*aiserverv1.CloudAgentState](t)(other.State(ctx, "bc-1", saved.State))
		if !proto.Equal(back, state) {
			t.Errorf("state is %v, want %v", back, state)
		}
		if err := s.Archive(ctx, "bc-1"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.AppendUpdate(ctx, "bc-1", nil, text("late")); !errors.Is(err, cloudagent.ErrArchived) {
			t.Errorf("append after the end: %v, want ErrArchived", err)
		}
		if _, err := s.SaveState(ctx, "bc-1", state, nil, nil); !errors.Is(err, cloudagent.ErrArchived) {
			t.Errorf("save after the end: %v, want ErrArchived", err)
		}
	})
}

func TestStreamBeginsWithTheStateAndResumesAfterAnyOffset(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		ctx, s := t.Context(), b.store()
		must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
		var offsets []string
		begin := must[cloudagent.Agent](t)(s.Get(ctx, "a")).Head
		offsets = append(offsets, begin.String())
		all := []string{"text 1", "text 2", "state 1 turns", "text 3", "status " + idle.String(), "text 4", "status " + cloudagent.StatusArchived.String()}
		for _, step := range []func() (cloudagent.Offset, error){
			func() (cloudagent.Offset, error) { return s.AppendUpdate(ctx, "a", nil, text("1")) },
			func() (cloudagent.Offset, error) { return s.AppendUpdate(ctx, "a", nil, text("2")) },
			func() (cloudagent.Offset, error) {
				state, blobs := stateOf(1)
				saved, err := s.SaveState(ctx, "a", state, blobs, nil)
				return saved.Offset, err
			},
			func() (cloudagent.Offset, error) { return s.AppendUpdate(ctx, "a", nil, text("3")) },
			func() (cloudagent.Offset, error) { return s.SetStatus(ctx, "a", idle, nil) },
			func() (cloudagent.Offset, error) { return s.AppendUpdate(ctx, "a", nil, text("4")) },
			func() (cloudagent.Offset, error) { return s.SetStatus(ctx, "a", cloudagent.StatusArchived, nil) },
		} {
			offsets = append(offsets, must[cloudagent.Offset](t)(step()).String())
		}
		check := func(after string, want ...string) {
			t.Helper()
			got := take(t, s, "a", -1, &cloudagent.StreamOptions{After: after})
			if len(got) != len(want) {
				t.Fatalf("after %q: %d responses, want %d", after, len(got), len(want))
			}
			for i := range want {
				if describe(got[i]) != want[i] {
					t.Errorf("after %q: response %d is %q, want %q", after, i, describe(got[i]), want[i])
				}
			}
		}
		for i, after := range offsets[:len(all)] {
			check(after, all[i:]...)
		}
		check(offsets[len(all)], all[len(all)-1]) // the end is told once more
		fresh := append([]string{"initial 1 turns " + cloudagent.StatusArchived.String(), "status " + cloudagent.StatusArchived.String()}, all[3:]...)
		check("", fresh...)
		check("0000000000000002-1", fresh...) // the right number of another history
		check(cloudagent.Offset{Seq: 99, Tag: 5}.String(), fresh...)
		for _, err := range s.Stream(ctx, "a", &cloudagent.StreamOptions{After: "nonsense"}) {
			if !errors.Is(err, cloudagent.ErrInvalidOffset) {
				t.Errorf("nonsense: %v, want ErrInvalidOffset", err)
			}
		}
		for _, err := range s.Stream(ctx, "nobody", nil) {
			if !errors.Is(err, cloudagent.ErrNotFound) {
				t.Errorf("nobody: %v, want ErrNotFound", err)
			}
		}
	})
}

func TestSaveStateIsCompleteOrNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		ctx, s := t.Context(), b.store()
		must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a"}))
		state, blobs := stateOf(3)
		var missing *kv.MissingBlobsError
		if _, err := s.SaveState(ctx, "a", state, blobs[:len(blobs)-1], nil); !errors.As(err, &missing) || len(missing.IDs) != 1 {
			t.Errorf("save without a turn: %v, want one missing blob", err)
		}
		bad := wireBlob("x")
		bad.Value = []byte("y")
		if _, err := s.SaveState(ctx, "a", state, append(blobs[:len(blobs):len(blobs)], bad), nil); !errors.Is(err, blob.ErrMismatch) {
			t.Errorf("save with a wrong id: %v, want ErrMismatch", err)
		}
		if _, err := s.SaveState(ctx, "a", state, blobs, &cloudagent.SaveOptions{Offset: "0000000000000007-7"}); !errors.Is(err, cloudagent.ErrInvalidOffset) {
			t.Errorf("save at an offset of another log: %v, want ErrInvalidOffset", err)
		}
		other := blob.Sum(nil)
		if _, err := s.SaveState(ctx, "a", state, blobs, &cloudagent.SaveOptions{IfState: &other}); !errors.Is(err, cloudagent.ErrConflict) {
			t.Errorf("save over another state: %v, want ErrConflict", err)
		}
		if got := must[cloudagent.Agent](t)(s.Get(ctx, "a")); got.Head.Seq != 0 || !got.State.IsZero() {
			t.Errorf("failed saves left %+v", got)
		}
		if _, err := b.rows.Get(ctx, keyspace.AgentMetadata("a")); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("failed saves left metadata: %v", err)
		}
		must[cloudagent.Saved](t)(s.SaveState(ctx, "a", state, blobs, &cloudagent.SaveOptions{IfState: new(blob.ID)}))
	})
}

// What a reader would refuse must not be acknowledged: it would be lost.
func TestStatesThatCouldNotBeReadAreRefused(t *testing.T) {
	ctx, b := t.Context(), memory()
	s := b.store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a"}))
	long := &aiserverv1.CloudAgentState{ConversationState: &agentv1.ConversationStateStructure{
		FileStatesV2: map[string]*agentv1.FileStateStructure{strings.Repeat("x", 5000): {}},
	}}
	for name, state := range map[string]*aiserverv1.CloudAgentState{"a path that is too long": long, "no state": nil} {
		if saved, err := s.SaveState(ctx, "a", state, nil, nil); !errors.Is(err, cloudagent.ErrInvalid) {
			t.Errorf("%s: saved as %s, %v, want ErrInvalid", name, saved.State.Short(), err)
			if _, err := b.store().State(ctx, "a", saved.State); err != nil {
				t.Errorf("%s: read back: %v", name, err)
			}
		}
	}
}
