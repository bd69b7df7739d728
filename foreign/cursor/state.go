package cursor

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// maxObject is the largest state that is read from a JSON object; decoding one
// takes several times its size in memory.
const maxObject = 4 << 20

// State is a conversation's state as it was stored: the encoding of an
// agent.v1.ConversationStateStructure, whose parts are blobs.
type State struct {
	// ID is the SHA-256 of Data, the blob id of the state.
	ID blob.ID
	// Data is the encoded message.
	Data []byte
	// Source names the place where it was found.
	Source string
}

// Decode decodes the state after checking its size.
func (s *State) Decode() (*agentv1.ConversationStateStructure, error) {
	m := &agentv1.ConversationStateStructure{}
	if err := unmarshal(s.Data, m); err != nil {
		return nil, fmt.Errorf("decode state %s: %w", s.ID.Short(), err)
	}
	return m, nil
}

// NewState returns the state with an encoding. source names the place where it was
// found.
func NewState(data []byte, source string) *State {
	return &State{ID: blob.Sum(data), Data: data, Source: source}
}

// parseState reads the field conversationState: "~" and base64, or hex, or the
// message as a JSON object. An absent or empty field gives neither a state nor an
// error.
func parseState(raw json.RawMessage) (*State, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	if raw[0] == '{' {
		return parseStateObject(raw)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, fmt.Errorf("%w: neither text nor an object", ErrMalformed)
	}
	return parseStateText(strings.TrimSpace(text))
}

func parseStateText(text string) (*State, error) {
	if text == "" {
		return nil, nil
	}
	var data []byte
	var err error
	source := "hex string"
	if encoded, ok := strings.CutPrefix(text, "~"); ok {
		source = "inline state"
		data, err = decodeBase64(encoded)
	} else {
		data, err = hex.DecodeString(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrMalformed, source, err)
	}
	if err := checkState(data); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return NewState(data, source), nil
}

func decodeBase64(s string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		if raw, rawErr := base64.RawStdEncoding.DecodeString(s); rawErr == nil {
			return raw, nil
		}
	}
	return data, err
}

func parseStateObject(raw []byte) (*State, error) {
	if len(raw) > maxObject {
		return nil, fmt.Errorf("%w: inline object of %d bytes", blob.ErrTooLarge, len(raw))
	}
	m := &agentv1.ConversationStateStructure{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, m); err != nil {
		return nil, fmt.Errorf("%w: inline object: %w", ErrMalformed, err)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("%w: inline object: %w", ErrMalformed, err)
	}
	if err := checkState(data); err != nil {
		return nil, fmt.Errorf("inline object: %w", err)
	}
	return NewState(data, "inline object"), nil
}

// hydrate finds a conversation's state in the order of the reference: pointer to a
// blob, hex string, inline state. The first readable source wins; an unreadable
// source is reported as data loss, even if a later one can be read.
func (s *Store) hydrate(ctx context.Context, c *Conversation, field json.RawMessage) error {
	var found []*State
	keep := func(state *State, source string, err error) {
		if err != nil {
			c.StateErr = errors.Join(c.StateErr, &DataLossError{Source: source, Err: err})
		} else if state != nil {
			found = append(found, state)
		}
	}
	key := HeadPrefix + c.ID
	v, err := s.value(ctx, key)
	switch {
	case err != nil && OfRow(err):
		keep(nil, key, err)
	case err != nil:
		return err
	case !v.Absent():
		state, err := s.stateAt(ctx, v)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		keep(state, key, err)
	}
	state, err := s.fieldState(ctx, field)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	keep(state, "conversationState of "+ConversationPrefix+c.ID, err)
	for _, state := range found {
		switch {
		case c.State == nil:
			c.State = state
		case state.ID != c.State.ID && len(state.Data) > 0:
			c.Alternates = append(c.Alternates, state)
		}
	}
	return nil
}

// stateAt reads the state that a pointer names.
func (s *Store) stateAt(ctx context.Context, pointer Value) (*State, error) {
	id, err := parsePointer(pointer)
	if err != nil {
		return nil, err
	}
	data, err := s.Blobs().Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := checkState(data); err != nil {
		return nil, err
	}
	return &State{ID: id, Data: data, Source: "pointer"}, nil
}

// fieldState reads the field conversationState. Sixty-four digits are the id of a
// stored blob, if it exists; states of 32 bytes are very rare.
func (s *Store) fieldState(ctx context.Context, field json.RawMessage) (*State, error) {
	var text string
	if json.Unmarshal(field, &text) == nil {
		if _, err := blob.ParseID(text); err == nil {
			state, stateErr := s.stateAt(ctx, Value{ClassText, []byte(text)})
			if stateErr == nil || !errors.Is(stateErr, blob.ErrNotFound) {
				return state, stateErr
			}
			if state, err := parseState(field); err == nil {
				return state, nil
			}
			return nil, stateErr
		}
	}
	return parseState(field)
}

// joinProblem adds an error to an earlier one.
func joinProblem(old, err error) error {
	if old == nil {
		return err
	}
	return errors.Join(old, err)
}
