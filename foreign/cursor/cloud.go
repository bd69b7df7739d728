package cursor

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

// CloudAgent is the metadata of a cloud agent.
type CloudAgent struct {
	ID string
	// State is the id of its CloudAgentState blob.
	State blob.ID
	// Offset is where its event stream continues.
	Offset string
	// Saved is when the row was written.
	Saved  time.Time
	Status aiserverv1.CloudAgentWorkflowStatus
	// Problem is why the row could not be read; then only ID is set.
	Problem error
	// Raw is the encoded CloudAgentStatePersistedMetadata.
	Raw []byte
}

// CloudAgents yields the metadata of all cloud agents in an editor's store.
func (s *Store) CloudAgents(ctx context.Context) iter.Seq2[CloudAgent, error] {
	return func(yield func(CloudAgent, error) bool) {
		// The keys are recognized by their suffix, so the ranges between the families
		// are read.
		for _, gap := range gaps() {
			for row, err := range s.scan(ctx, gap, scanKeys) {
				if err != nil {
					yield(CloudAgent{}, err)
					return
				}
				id, ok := strings.CutSuffix(row.key, CloudAgentSuffix)
				if !ok {
					continue
				}
				v, err := s.value(ctx, row.key)
				var agent CloudAgent
				switch {
				case err == nil && v.Absent():
					continue
				case err == nil:
					agent = DecodeCloudAgent(id, v.Data)
				case OfRow(err):
					agent, err = CloudAgent{ID: id, Problem: fmt.Errorf("read metadata of %s: %w", id, err)}, nil
				}
				if !yield(agent, err) || err != nil {
					return
				}
			}
		}
	}
}

// DecodeCloudAgent decodes the metadata row of a cloud agent.
func DecodeCloudAgent(id string, row []byte) CloudAgent {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(row)))
	if err != nil {
		return CloudAgent{ID: id, Problem: fmt.Errorf("read metadata of %s: %w: %w", id, ErrMalformed, err)}
	}
	agent, err := parseMetadata(raw)
	if err != nil {
		return CloudAgent{ID: id, Raw: raw, Problem: fmt.Errorf("read metadata of %s: %w", id, err)}
	}
	agent.ID, agent.Raw = id, raw
	return agent
}

// StateInAgent returns the conversation's state inside the state of a cloud agent, or nil
// if there is none.
func StateInAgent(data []byte) (*State, error) {
	const stateField = 1
	var state []byte // repeated fields are concatenated
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeField(data)
		if n < 0 {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		if number == stateField && wire == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(data)
			value, _ := protowire.ConsumeBytes(data[tag:])
			state = append(state, value...)
		}
		data = data[n:]
	}
	if len(state) == 0 {
		return nil, nil
	}
	root := NewState(state, "cloud agent")
	_, err := root.Decode()
	return root, err
}

// parseMetadata decodes a metadata message. An unknown version is an error: reading
// it as a known one could lose what it points to.
func parseMetadata(raw []byte) (CloudAgent, error) {
	old, err := oldTimestamp(raw)
	if err != nil {
		return CloudAgent{}, err
	}
	m := &aiserverv1.CloudAgentStatePersistedMetadata{}
	if err := proto.Unmarshal(raw, m); err != nil {
		return CloudAgent{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if v := m.GetVersion(); v != aiserverv1.CloudAgentStatePersistedMetadata_PERSISTED_METADATA_VERSION_1 &&
		v != aiserverv1.CloudAgentStatePersistedMetadata_PERSISTED_METADATA_VERSION_UNSPECIFIED {
		return CloudAgent{}, fmt.Errorf("%w: metadata version %d", ErrUnsupported, v)
	}
	id, err := blob.IDFromBytes(m.GetCloudAgentStateBlobId())
	if err != nil {
		return CloudAgent{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	saved := m.GetTimestampMs()
	if saved == 0 {
		saved = old
	}
	return CloudAgent{State: id, Offset: m.GetOffsetKey(), Saved: millis(saved), Status: m.GetWorkflowStatus()}, nil
}

// oldTimestamp finds the time in the form of older releases, a varint in the
// field that is a double now. The decoder keeps it as an unknown field.
func oldTimestamp(raw []byte) (float64, error) {
	const timestampField = 3
	var old float64
	for len(raw) > 0 {
		number, wire, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return 0, fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		raw = raw[n:]
		if number == timestampField && wire == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(raw)
			old = float64(int64(v))
		}
		if n = protowire.ConsumeFieldValue(number, wire, raw); n < 0 {
			return 0, fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		raw = raw[n:]
	}
	return old, nil
}
