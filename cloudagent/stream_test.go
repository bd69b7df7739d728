package cloudagent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/cloudagent"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/kv"
)

// deaf gives no hints.
type deaf struct{ kv.Store }

func (deaf) Watch(context.Context, kv.Range) <-chan struct{} { return nil }

// An event is seen at once where rows give hints, and by polling where not.
func TestStreamWakesUp(t *testing.T) {
	for _, c := range []struct {
		name string
		wrap func(kv.Store) kv.Store
		most time.Duration
	}{
		{"by hints", func(s kv.Store) kv.Store { return s }, 0},
		{"by polling", func(s kv.Store) kv.Store { return deaf{s} }, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory()
				s := cloudagent.New(b.blobs, c.wrap(b.rows), nil)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
				seen := make(chan time.Time)
				go func() {
					defer close(seen)
					for m, err := range s.Stream(ctx, "a", nil) {
						if err != nil {
							return
						}
						if strings.HasPrefix(describe(m), "text") {
							seen <- time.Now()
						}
					}
				}()
				synctest.Wait()
				time.Sleep(2500 * time.Millisecond)
				written := time.Now()
				must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, text("x")))
				if late := (<-seen).Sub(written); late > c.most {
					t.Errorf("seen after %v, want %v at most", late, c.most)
				}
				cancel()
				for range seen {
				}
			})
		})
	}
}

// A silent stream beats; its heart does not move the offset.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory().store()
		must[cloudagent.Agent](t)(s.Create(t.Context(), cloudagent.Spec{ID: "a", Status: running}))
		end := must[cloudagent.Offset](t)(s.AppendUpdate(t.Context(), "a", nil, text("x")))
		begin, beats := time.Now(), 0
		for m, err := range s.Stream(t.Context(), "a", &cloudagent.StreamOptions{Heartbeat: 7 * time.Second}) {
			if err != nil {
				t.Fatal(err)
			}
			u := m.GetInteractionUpdateWithOffset()
			if u.GetInteractionUpdate().GetHeartbeat() == nil {
				continue
			}
			if u.OffsetKey != end.String() {
				t.Errorf("heartbeat at %s, want %s", u.OffsetKey, end)
			}
			if beats++; beats == 4 {
				break
			}
		}
		if got := time.Since(begin); got != 28*time.Second {
			t.Errorf("four heartbeats took %v, want 28 s", got)
		}
	})
}

// A connection that is silent for too long is given up.
func TestFollowGivesUpSilentConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory().store()
		must[cloudagent.Agent](t)(s.Create(t.Context(), cloudagent.Spec{ID: "a", Status: running}))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		dials := 0
		var last error
		for _, err := range cloudagent.Follow(ctx, cloudagent.FollowOptions{
			Dial: func(context.Context, string) (cloudagent.Receiver, error) { dials++; return silent{}, nil },
		}) {
			last = err
		}
		if !errors.Is(last, context.DeadlineExceeded) || dials < 4 || dials > 5 {
			t.Errorf("%d connections in five minutes, then %v", dials, last)
		}
	})
}

type silent struct{}

func (silent) Receive(ctx context.Context) (*aiserverv1.StreamConversationResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Close() error { return nil }

func TestPrefetchedBlobsComeFirst(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	state, blobs := stateOf(30)
	must[cloudagent.Saved](t)(s.SaveState(ctx, "a", state, blobs, nil))
	known := blob.ID(blobs[0].Id)
	got := take(t, s, "a", 4, &cloudagent.StreamOptions{PrefetchedFirst: true, SignalAfterPrefetch: true, KnownBlobs: []blob.ID{known}})
	first := got[0].GetPrefetchedBlobs().GetPreFetchedBlobs()
	if len(first) != len(blobs)-1 {
		t.Errorf("%d blobs come first, want %d", len(first), len(blobs)-1)
	}
	for _, b := range first {
		if id := blob.Sum(b.Value); id != blob.ID(b.Id) || id == known {
			t.Errorf("blob %x has content of %s, %s is known", b.Id, id, known)
		}
	}
	if got[1].GetStreamSignal() != aiserverv1.StreamConversationResponse_STREAM_SIGNAL_END_OF_INITIAL_STATE_PREFETCH {
		t.Errorf("then comes %v", got[1])
	}
	if m := got[2].GetInitialState(); m == nil || len(m.PreFetchedBlobs) != 0 {
		t.Errorf("then comes %v", got[2])
	}
	few := take(t, s, "a", 1, &cloudagent.StreamOptions{MaxBlobsAfterPrefetch: 7})
	if n := len(few[0].GetInitialState().GetPreFetchedBlobs()); n != 7 {
		t.Errorf("%d blobs in the initial state, want 7", n)
	}
}

func TestOptionsForARequest(t *testing.T) {
	offset, yes, three := "0000000000000001-2", true, uint32(3)
	id := blob.Sum([]byte("x"))
	got, err := cloudagent.OptionsFor(&aiserverv1.StreamConversationRequest{
		OffsetKey: &offset, FilterHeavyStepData: &yes, ShouldSendPrefetchedBlobsFirst: true, PreFetchedBlobIds: [][]byte{id[:]},
		PrefetchOnlyLastStepPerTurn: &yes, SendStreamSignalAfterPrefetch: &yes, MaxBlobsAfterPrefetch: &three, AllowStreamingWhenTerminalStatus: &yes,
	})
	want := cloudagent.StreamOptions{
		After: offset, FilterHeavyStepData: true, PrefetchedFirst: true, SignalAfterPrefetch: true, OnlyLastStep: true,
		KnownBlobs: []blob.ID{id}, MaxBlobsAfterPrefetch: 3, AllowTerminal: true,
	}
	if err != nil || fmt.Sprint(*got) != fmt.Sprint(want) {
		t.Errorf("options are %+v, %v; want %+v", got, err, want)
	}
	if none, err := cloudagent.OptionsFor(&aiserverv1.StreamConversationRequest{MaxBlobsAfterPrefetch: new(uint32)}); err != nil || none.MaxBlobsAfterPrefetch != -1 {
		t.Errorf("no blobs at all become %+v, %v", none, err)
	}
	if _, err := cloudagent.OptionsFor(&aiserverv1.StreamConversationRequest{PreFetchedBlobIds: [][]byte{{1}}}); !errors.Is(err, blob.ErrInvalidID) {
		t.Errorf("a short id: %v, want ErrInvalidID", err)
	}
}

// Of each turn only the last step is sent ahead, on request.
func TestOnlyTheLastStepIsSentAhead(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	turn := &agentv1.AgentConversationTurnStructure{}
	var blobs []*aiserverv1.PreFetchedBlob
	put := func(m proto.Message) []byte {
		b := wireBlob(string(marshal(m)))
		blobs = append(blobs, b)
		return b.Id
	}
	for i := range 5 {
		turn.Steps = append(turn.Steps, put(&agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
			AssistantMessage: &agentv1.AssistantMessage{Text: fmt.Sprint("step ", i)},
		}}))
	}
	last := blobs[4]
	id := put(&agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{AgentConversationTurn: turn}})
	state := &aiserverv1.CloudAgentState{ConversationState: &agentv1.ConversationStateStructure{Turns: [][]byte{id}}}
	must[cloudagent.Saved](t)(s.SaveState(ctx, "a", state, blobs, nil))
	got := take(t, s, "a", 1, &cloudagent.StreamOptions{OnlyLastStep: true})[0].GetInitialState().PreFetchedBlobs
	if len(got) != 2 || string(got[0].Value) != string(blobs[5].Value) || string(got[1].Value) != string(last.Value) {
		t.Errorf("%d blobs are sent ahead: %v", len(got), got)
	}
}

func TestHeavyDataIsLeftOut(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	start := must[cloudagent.Agent](t)(s.Get(ctx, "a")).Head.String()
	call := func(size int) *agentv1.InteractionUpdate {
		return &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ToolCallCompleted{ToolCallCompleted: &agentv1.ToolCallCompletedUpdate{
			CallId: "c",
			ToolCall: &agentv1.ToolCall{ToolCallId: proto.String("c"), Tool: &agentv1.ToolCall_ReadToolCall{ReadToolCall: &agentv1.ReadToolCall{
				Result: &agentv1.ReadToolResult{Result: &agentv1.ReadToolResult_Success{Success: &agentv1.ReadToolSuccess{
					Output: &agentv1.ReadToolSuccess_Content{Content: strings.Repeat("x", size)},
				}}},
			}}},
		}}}
	}
	must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "a", nil, call(100), call(100_000)))
	for _, filter := range []bool{false, true} {
		got := take(t, s, "a", 2, &cloudagent.StreamOptions{After: start, FilterHeavyStepData: filter})
		for i, m := range got {
			c := m.GetInteractionUpdateWithOffset().GetInteractionUpdate().GetToolCallCompleted().GetToolCall()
			if truncated := c.GetTruncatedToolCall() != nil; truncated != (filter && i == 1) || c.GetToolCallId() != "c" {
				t.Errorf("filter %v, call %d: truncated is %v, id %q", filter, i, truncated, c.GetToolCallId())
			}
		}
	}
}

// A reader that stops in the middle, or whose context ends, leaves nothing
// behind; TestMain looks for goroutines.
func TestStreamEndsWithItsReader(t *testing.T) {
	s := memory().store()
	must[cloudagent.Agent](t)(s.Create(t.Context(), cloudagent.Spec{ID: "a", Status: running}))
	take(t, s, "a", 1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	for _, err := range s.Stream(ctx, "a", nil) {
		if n++; n == 2 {
			cancel()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if n != 3 {
		t.Errorf("%d answers, want the state, the status and the error", n)
	}
	cancel()
}

func TestSubscribersReceiveChanges(t *testing.T) {
	ctx, b := t.Context(), memory()
	s := b.store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	turns := 0
	for p, err := range s.Subscribe(ctx, "a") {
		if err != nil {
			t.Fatal(err)
		}
		if p.Properties.NumTurns != turns {
			t.Errorf("%d turns, want %d", p.Properties.NumTurns, turns)
		}
		if turns++; turns == 4 {
			break
		}
		state, blobs := stateOf(turns)
		// Another process writes, and something that is not a property changes, too.
		must[cloudagent.Offset](t)(b.store().AppendUpdate(ctx, "a", nil, text(fmt.Sprint(turns))))
		must[cloudagent.Saved](t)(b.store().SaveState(ctx, "a", state, blobs, nil))
	}
}

func TestSubscribersGetTheStatus(t *testing.T) {
	ctx, s := t.Context(), memory().store()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	want := []cloudagent.Status{running, idle, cloudagent.StatusArchived}
	seen := 0
	for agent, err := range s.Subscribe(ctx, "a") {
		if err != nil {
			t.Fatal(err)
		}
		if agent.Status != want[seen] {
			t.Errorf("status %d is %v, want %v", seen, agent.Status, want[seen])
		}
		if seen++; seen == len(want) {
			break
		}
		must[cloudagent.Offset](t)(s.SetStatus(ctx, "a", want[seen], nil))
	}
}
