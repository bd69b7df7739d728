package cloudagent

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

const (
	// heavy is the size from which a tool call or a blob counts as heavy.
	heavy = 16 << 10
	// maxPrefetch and maxPrefetchBytes limit the blobs sent before the initial state.
	maxPrefetch      = 1024
	maxPrefetchBytes = 8 << 20
	// maxMessageBytes limits the blobs of one message.
	maxMessageBytes = 1 << 20
	// maxSent limits how many sent blobs a stream remembers. Sending one twice is
	// harmless.
	maxSent = 1 << 16
)

func (r *reader) noteSent(id blob.ID) {
	if len(r.sent) >= maxSent {
		clear(r.sent)
	}
	r.sent[id] = struct{}{}
}

// wanted reports whether to send a blob, and records it as sent.
func (r *reader) wanted(id blob.ID, data []byte) bool {
	if _, has := r.sent[id]; has || r.opts.FilterHeavyStepData && len(data) > heavy {
		return false
	}
	r.noteSent(id)
	return true
}

// prefetch sends the blobs of the initial state, or puts some into it.
func (r *reader) prefetch(ctx context.Context, state blob.ID, m *initialState) error {
	if !r.opts.PrefetchedFirst {
		var err error
		m.PreFetchedBlobs, err = r.blobsOf(ctx, state, r.opts.MaxBlobsAfterPrefetch, maxMessageBytes)
		return err
	}
	blobs, err := r.blobsOf(ctx, state, maxPrefetch, maxPrefetchBytes)
	if err != nil {
		return err
	}
	for len(blobs) > 0 {
		n, size := 0, 0
		for n < len(blobs) && (n == 0 || size+len(blobs[n].Value) <= maxMessageBytes) {
			size += len(blobs[n].Value)
			n++
		}
		if !r.send(&response{Message: &aiserverv1.StreamConversationResponse_PrefetchedBlobs_{
			PrefetchedBlobs: &aiserverv1.StreamConversationResponse_PrefetchedBlobs{PreFetchedBlobs: blobs[:n]},
		}}) {
			return nil
		}
		blobs = blobs[n:]
	}
	if r.opts.SignalAfterPrefetch {
		r.send(&response{Message: &aiserverv1.StreamConversationResponse_StreamSignal_{
			StreamSignal: aiserverv1.StreamConversationResponse_STREAM_SIGNAL_END_OF_INITIAL_STATE_PREFETCH,
		}})
	}
	return nil
}

// blobsOf returns blobs of a state, latest turns first, within the limits. It skips
// unreadable blobs: a damaged image must not prevent following, and requesting it
// returns the error.
func (r *reader) blobsOf(ctx context.Context, state blob.ID, limit, bytes int) ([]*aiserverv1.PreFetchedBlob, error) {
	var out []*aiserverv1.PreFetchedBlob
	var seen graph.Set
	stack := []graph.Ref{{Kind: graph.CloudState, ID: state}}
	for len(stack) > 0 && len(out) < limit {
		ref := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !seen.Add(ref.ID, ref.Kind) {
			continue
		}
		data, err := r.s.blobs.Get(ctx, ref.ID)
		if unreadable(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read blobs of agent %s: %w", r.agent, err)
		}
		refs, _ := graph.Refs(ref.Kind, data) // a malformed blob has no references
		if r.opts.OnlyLastStep {
			refs = withoutEarlierSteps(refs)
		}
		stack = append(stack, refs...)
		if ref.ID == state || len(data) > bytes || !r.wanted(ref.ID, data) {
			continue
		}
		bytes -= len(data)
		out = append(out, &aiserverv1.PreFetchedBlob{Id: ref.ID.Bytes(), Value: data})
	}
	return out, nil
}

func unreadable(err error) bool {
	return errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt)
}

// withoutEarlierSteps keeps only the last step of a turn.
func withoutEarlierSteps(refs []graph.Ref) []graph.Ref {
	last := -1
	for i, r := range refs {
		if r.Kind == graph.Step {
			last = i
		}
	}
	var out []graph.Ref
	for i, r := range refs {
		if r.Kind != graph.Step || i == last {
			out = append(out, r)
		}
	}
	return out
}

// lighten replaces a heavy call by a truncated one.
func lighten(u *agentv1.InteractionUpdate) {
	switch v := u.Message.(type) {
	case *agentv1.InteractionUpdate_ToolCallStarted:
		v.ToolCallStarted.ToolCall = light(v.ToolCallStarted.ToolCall)
	case *agentv1.InteractionUpdate_ToolCallCompleted:
		v.ToolCallCompleted.ToolCall = light(v.ToolCallCompleted.ToolCall)
	case *agentv1.InteractionUpdate_PartialToolCall:
		v.PartialToolCall.ToolCall = light(v.PartialToolCall.ToolCall)
	}
}

func light(call *agentv1.ToolCall) *agentv1.ToolCall {
	if call == nil || call.GetTruncatedToolCall() != nil || proto.Size(call) <= heavy {
		return call
	}
	return &agentv1.ToolCall{
		Tool: &agentv1.ToolCall_TruncatedToolCall{TruncatedToolCall: &agentv1.TruncatedToolCall{
			Args: &agentv1.TruncatedToolCallArgs{},
			Result: &agentv1.TruncatedToolCallResult{Result: &agentv1.TruncatedToolCallResult_Success{
				Success: &agentv1.TruncatedToolCallSuccess{},
			}},
		}},
		ToolCallId: call.ToolCallId, StartedAtMs: call.StartedAtMs, CompletedAtMs: call.CompletedAtMs,
	}
}
