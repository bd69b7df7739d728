package cloudagent

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// Message is a response of a stream. Streams that send the same message share it, so
// it must not be changed.
type Message struct {
	*aiserverv1.StreamConversationResponse

	shared  bool
	mu      sync.Mutex // guards encoded
	encoded map[string][]byte
}

// Encoded returns the message in the encoding with a name, which encode makes. A
// message that streams share is encoded once for all of them; the result must not be
// changed.
func (m *Message) Encoded(name string, encode func() ([]byte, error)) ([]byte, error) {
	if !m.shared {
		return encode()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, ok := m.encoded[name]; ok {
		return data, nil
	}
	data, err := encode()
	if err != nil {
		return nil, err
	}
	if m.encoded == nil {
		m.encoded = make(map[string][]byte, 1)
	}
	m.encoded[name] = data
	return data, nil
}

func unshared(res *response) *Message { return &Message{StreamConversationResponse: res} }

// entry is an event and the messages that streams make of it. It is safe for concurrent
// use.
type entry struct {
	event
	before Offset
	agent  string
	shared bool // by the followers of the agent, not of one stream

	mu        sync.Mutex // guards what follows
	messages  map[string]*Message
	blobs     map[int]*aiserverv1.PreFetchedBlob
	blobBytes int
}

// maxVariants is how many different messages of one event are kept. They differ in the
// options of streams, and in the blobs that their readers have.
const maxVariants = 8

// made returns the message of a variant, or nil if there is none yet.
func (e *entry) made(variant string) *Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.messages[variant]
}

// message returns the message of a variant, and builds it if there is none yet.
func (e *entry) message(variant string, build func() (*response, error)) (m *Message, built bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m := e.messages[variant]; m != nil {
		return m, false, nil
	}
	res, err := build()
	if err != nil {
		return nil, false, err
	}
	m = &Message{StreamConversationResponse: res, shared: e.shared && len(e.messages) < maxVariants}
	if !m.shared {
		return m, false, nil
	}
	if e.messages == nil {
		e.messages = make(map[string]*Message, 1)
	}
	e.messages[variant] = m
	return m, true, nil
}

// blob returns a blob of the event by its number, or nil if it cannot be read.
func (e *entry) blob(ctx context.Context, s *Store, i int, id blob.ID) (*aiserverv1.PreFetchedBlob, error) {
	e.mu.Lock()
	b, ok := e.blobs[i]
	e.mu.Unlock()
	if ok {
		return b, nil
	}
	data, err := s.blobs.Get(ctx, id) // not under the lock, as others need not wait for it
	if err != nil && !unreadable(err) {
		return nil, fmt.Errorf("read blob of event %d of agent %s: %w", e.at.Seq, e.agent, err)
	}
	if err == nil {
		b = &aiserverv1.PreFetchedBlob{Id: id.Bytes(), Value: data}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shared && e.blobBytes+len(data) <= maxMessageBytes {
		if e.blobs == nil {
			e.blobs = make(map[int]*aiserverv1.PreFetchedBlob)
		}
		e.blobs[i] = b
		e.blobBytes += len(data)
	}
	return b, nil
}

// message returns what the stream sends for an event.
func (r *reader) message(ctx context.Context, e *entry) (*Message, error) {
	switch v := e.rec.Event.(type) {
	case *stetv1.AgentEventRecord_Update:
		variant := "whole"
		if r.opts.FilterHeavyStepData {
			variant = "light"
		}
		m, _, err := e.message(variant, func() (*response, error) {
			u := new(agentv1.InteractionUpdate)
			if err := proto.Unmarshal(v.Update, u); err != nil {
				return nil, fmt.Errorf("%w: event %d of agent %s: %w", ErrDataLoss, e.at.Seq, r.agent, err)
			}
			if r.opts.FilterHeavyStepData {
				lighten(u)
			}
			return &response{Message: &aiserverv1.StreamConversationResponse_InteractionUpdateWithOffset_{
				InteractionUpdateWithOffset: &updateMessage{OffsetKey: e.at.String(), InteractionUpdate: u},
			}}, nil
		})
		return m, err
	case *stetv1.AgentEventRecord_State:
		return r.stateMessage(ctx, e, v.State)
	case *stetv1.AgentEventRecord_Status:
		m, _, err := e.message("status", func() (*response, error) { return statusAt(v.Status, e.at), nil })
		return m, err
	}
	return nil, fmt.Errorf("%w: event %d of agent %s is of an unknown kind", ErrNewerFormat, e.at.Seq, r.agent)
}

func (r *reader) stateMessage(ctx context.Context, e *entry, rawID []byte) (*Message, error) {
	id, err := blob.IDFromBytes(rawID)
	if err != nil {
		return nil, fmt.Errorf("%w: event %d of agent %s: %w", ErrDataLoss, e.at.Seq, r.agent, err)
	}
	blobs, chosen, err := r.eventBlobs(ctx, e)
	if err != nil {
		return nil, err
	}
	variant := "state " + chosen
	if m := e.made(variant); m != nil {
		return m, nil
	}
	state, err := r.s.sharedState(ctx, r.agent, id) // not under the lock, as for blobs
	if err != nil {
		return nil, err
	}
	m, built, err := e.message(variant, func() (*response, error) {
		return &response{Message: &aiserverv1.StreamConversationResponse_CloudAgentStateWithIdAndOffset_{
			CloudAgentStateWithIdAndOffset: &stateMessage{
				OffsetKey: e.at.String(), BlobId: id.Bytes(), CloudAgentState: fitting(state), PreFetchedBlobs: blobs,
			},
		}}, nil
	})
	if built {
		r.tail.Grow(e.before, 3*proto.Size(m.StreamConversationResponse)) // and its encoding
	}
	return m, err
}

// eventBlobs returns the blobs of an event, within the limits, and which ones they are.
func (r *reader) eventBlobs(ctx context.Context, e *entry) (out []*aiserverv1.PreFetchedBlob, chosen string, err error) {
	var which []byte
	left := maxMessageBytes
	for i, raw := range e.rec.Blobs {
		if len(out) >= r.opts.MaxBlobsAfterPrefetch {
			break
		}
		id, err := blob.IDFromBytes(raw)
		if err != nil {
			return nil, "", fmt.Errorf("%w: event %d of agent %s: %w", ErrDataLoss, e.at.Seq, r.agent, err)
		}
		if _, has := r.sent[id]; has {
			continue
		}
		b, err := e.blob(ctx, r.s, i, id)
		if err != nil {
			return nil, "", err
		}
		if b == nil || len(b.Value) > left || !r.wanted(id, b.Value) {
			continue
		}
		left -= len(b.Value)
		out, which = append(out, b), binary.AppendUvarint(which, uint64(i))
	}
	return out, string(which), nil
}

// maxInline is the size up to which a state is sent with its event. A reader fetches a
// larger one by its id, as it does any large blob.
const maxInline = 2 << 20

// fitting returns a state, or nil if it is too large for a message.
func fitting(state *aiserverv1.CloudAgentState) *aiserverv1.CloudAgentState {
	if proto.Size(state) > maxInline {
		return nil
	}
	return state
}
