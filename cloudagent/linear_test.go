package cloudagent_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/cloudagent"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/internal/testenv"
)

// register is what the clients fight for: a status and a state, each a register
// with compare-and-swap.
type register struct {
	status cloudagent.Status
	state  blob.ID
}

type call struct {
	read bool
	// A swap of the status, or else of the state.
	fromStatus, toStatus cloudagent.Status
	fromState, toState   blob.ID
}

type answer struct {
	seen register // of a read
	ok   bool     // of a swap
}

var registerModel = porcupine.Model{
	Init: func() any { return register{status: running} },
	Step: func(state, input, output any) (bool, any) {
		now, in, out := state.(register), input.(call), output.(answer)
		switch {
		case in.read:
			return out.seen == now, now
		case in.toStatus != 0:
			if fits := now.status == in.fromStatus; !fits || !out.ok {
				return fits == out.ok, now
			}
			now.status = in.toStatus
		default:
			if fits := now.state == in.fromState; !fits || !out.ok {
				return fits == out.ok, now
			}
			now.state = in.toState
		}
		return true, now
	},
}

// Clients of two handles swap states and statuses and read: whatever they saw
// fits one order of events.
func TestSwapsAreLinearizable(t *testing.T) {
	dir := t.TempDir()
	stores := []*cloudagent.Store{embedded(t, dir).store(), embedded(t, dir).store()}
	must[cloudagent.Agent](t)(stores[0].Create(t.Context(), cloudagent.Spec{ID: "a", Status: running}))
	begin := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	for client := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(client), 5))
			var last register
			for i := range testenv.Scale(40, 400) {
				in := draw(rng, last, fmt.Sprint(client, " ", i))
				called := time.Since(begin)
				out, err := perform(t, stores[client%2], in)
				if err != nil {
					t.Error(err)
					return
				}
				if in.read {
					last = out.seen
				}
				mu.Lock()
				history = append(history, porcupine.Operation{
					ClientId: client, Input: in, Output: out, Call: int64(called), Return: int64(time.Since(begin)),
				})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	wins := 0
	for _, op := range history {
		if op.Output.(answer).ok {
			wins++
		}
	}
	if result := porcupine.CheckOperationsTimeout(registerModel, history, time.Minute); result != porcupine.Ok {
		t.Errorf("history of %d operations: %s", len(history), result)
	}
	if wins == 0 {
		t.Error("no swap succeeded, the test shows nothing")
	}
}

func draw(rng *rand.Rand, last register, unique string) call {
	switch rng.IntN(3) {
	case 0:
		return call{read: true}
	case 1:
		statuses := []cloudagent.Status{running, idle, aiserverv1.CloudAgentWorkflowStatus_CLOUD_AGENT_WORKFLOW_STATUS_ERROR}
		return call{fromStatus: statuses[rng.IntN(3)], toStatus: statuses[rng.IntN(3)]}
	}
	raw := &aiserverv1.CloudAgentState{AgentSessionId: &unique}
	return call{fromState: last.state, toState: stateID(raw)}
}

func perform(t *testing.T, s *cloudagent.Store, in call) (answer, error) {
	ctx := t.Context()
	var err error
	switch {
	case in.read:
		got, err := s.Get(ctx, "a")
		return answer{seen: register{got.Status, got.State}}, err
	case in.toStatus != 0:
		_, err = s.SetStatus(ctx, "a", in.toStatus, &cloudagent.StatusOptions{From: []cloudagent.Status{in.fromStatus}})
	default:
		_, err = s.SaveState(ctx, "a", known(in.toState), nil, &cloudagent.SaveOptions{IfState: &in.fromState})
	}
	if errors.Is(err, cloudagent.ErrConflict) {
		return answer{}, nil
	}
	return answer{ok: err == nil}, err
}

// states remembers the states that stateID saw.
var states sync.Map

func stateID(state *aiserverv1.CloudAgentState) blob.ID {
	id := blob.Sum(marshal(state))
	states.Store(id, state)
	return id
}

func known(id blob.ID) *aiserverv1.CloudAgentState {
	state, _ := states.Load(id)
	return state.(*aiserverv1.CloudAgentState)
}
