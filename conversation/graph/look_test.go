package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// twoTurns stores a state with two turns that share a message, and one step of which
// is missing.
func twoTurns(t *testing.T) (*memblob.Store, graph.Root) {
	t.Helper()
	blobs := memblob.New()
	put := func(m proto.Message) blob.ID {
		b := blob.New(marshal(t, m))
		if err := blobs.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return b.ID
	}
	user := put(&agentv1.UserMessage{Text: "hello"})
	turn := func(steps ...[]byte) []byte {
		return put(&agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{
			AgentConversationTurn: &agentv1.AgentConversationTurnStructure{UserMessage: user.Bytes(), Steps: steps}}}).Bytes()
	}
	root := put(&agentv1.ConversationStateStructure{Turns: [][]byte{turn(), turn(id(1))}})
	return blobs, graph.Root{Kind: graph.State, ID: root}
}

func TestLook(t *testing.T) {
	blobs, root := twoTurns(t)
	for _, tt := range []struct {
		name      string
		opts      *graph.LookOptions
		want      string
		truncated bool
	}{
		{"everything", nil, "0 state|1 turn|2 user message|1 turn|2 user message again|2 step missing", false},
		{"nearest", &graph.LookOptions{Nearest: true}, "0 state|1 turn|1 turn|2 user message|2 user message again|2 step missing", false},
		{"depth", &graph.LookOptions{Depth: 1}, "0 state|1 turn|1 turn", false},
		{"few blobs", &graph.LookOptions{Nearest: true, MaxBlobs: 4}, "0 state|1 turn|1 turn|2 user message|2 user message again", true},
		{"few references", &graph.LookOptions{MaxRefs: 1}, "0 state|1 turn|2 user message", true},
		{"small blobs", &graph.LookOptions{MaxBytes: 40}, "0 state too large to show", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			truncated, err := graph.Look(t.Context(), blobs, root, tt.opts, func(s *graph.Sight) error {
				line := fmt.Sprint(s.Depth, " ", s.Kind)
				if s.Again {
					line += " again"
				}
				if s.Depth == 0 != s.From.IsZero() {
					t.Errorf("%s is from %s", line, s.From.Short())
				}
				got = append(got, strings.TrimSpace(line+" "+s.Problem()))
				return nil
			})
			if want := strings.Split(tt.want, "|"); err != nil || truncated != tt.truncated || !slices.Equal(got, want) {
				t.Errorf("saw %q, truncated %v, %v; want %q, %v", got, truncated, err, want, tt.truncated)
			}
		})
	}
}

func TestLookEndsWithErrors(t *testing.T) {
	blobs, root := twoTurns(t)
	stop := errors.New("stop")
	if _, err := graph.Look(t.Context(), blobs, root, nil, func(*graph.Sight) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("show's error: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := graph.Look(ctx, blobs, root, nil, func(*graph.Sight) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("context: got %v", err)
	}
	if err := blobs.Put(t.Context(), blob.New([]byte("text"))); err != nil {
		t.Fatal(err)
	}
	_, err := graph.Look(t.Context(), blobs, graph.Root{Kind: graph.State, ID: blob.Sum([]byte("text"))}, nil, func(s *graph.Sight) error {
		if s.Problem() != "not a state" || !errors.Is(s.Err, graph.ErrMalformed) {
			t.Errorf("problem %q, %v", s.Problem(), s.Err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
