package cloudagent

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
	"github.com/stet-dev/stet/fault"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// ErrMetadataVersion says that metadata has a version that this release does not
// know. Such an agent exists; it is never treated as absent.
var ErrMetadataVersion = fault.Named(fault.NewerFormat, "newer-metadata", "unknown version of cloud agent metadata")

const (
	metadataVersion = aiserverv1.CloudAgentStatePersistedMetadata_PERSISTED_METADATA_VERSION_1
	// unversioned metadata is older than the versions and has the same fields. Every
	// reader accepts it; the next change of the agent writes the current version.
	unversioned = aiserverv1.CloudAgentStatePersistedMetadata_PERSISTED_METADATA_VERSION_UNSPECIFIED
)

// Metadata is the small row that points at an agent's state, in the compatible
// form.
type Metadata struct {
	// State is the id of the state, zero if the row names none.
	State blob.ID
	// OffsetKey is the offset at which the state was current, as stored: other
	// programs use other formats.
	OffsetKey string
	Time      time.Time
	Status    aiserverv1.CloudAgentWorkflowStatus
}

// EncodeMetadata encodes metadata as the value of its row: standard base64.
func EncodeMetadata(m Metadata) ([]byte, error) {
	pb := &aiserverv1.CloudAgentStatePersistedMetadata{
		OffsetKey: m.OffsetKey, TimestampMs: float64(m.Time.UnixMilli()), WorkflowStatus: m.Status, Version: metadataVersion,
	}
	if !m.State.IsZero() {
		pb.CloudAgentStateBlobId = m.State.Bytes()
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(pb)
	if err != nil {
		return nil, fmt.Errorf("encode cloud agent metadata: %w", err)
	}
	return base64.StdEncoding.AppendEncode(nil, raw), nil
}

// ParseMetadata reads the value of a metadata row. It accepts rows without a version
// like those of version 1, and the time as a double or, in older rows, as an integer.
func ParseMetadata(value []byte) (Metadata, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(value)))
	if err != nil {
		return Metadata{}, fmt.Errorf("%w: cloud agent metadata: %w", kv.ErrCorrupt, err)
	}
	pb := new(aiserverv1.CloudAgentStatePersistedMetadata)
	if err := wirelimit.Unmarshal(raw, pb, nil); err != nil {
		return Metadata{}, fmt.Errorf("%w: cloud agent metadata: %w", kv.ErrCorrupt, err)
	}
	if pb.Version != metadataVersion && pb.Version != unversioned {
		return Metadata{}, fmt.Errorf("%w: %d", ErrMetadataVersion, pb.Version)
	}
	m := Metadata{OffsetKey: pb.OffsetKey, Status: pb.WorkflowStatus, Time: metadataTime(pb)}
	if len(pb.CloudAgentStateBlobId) > 0 {
		if m.State, err = blob.IDFromBytes(pb.CloudAgentStateBlobId); err != nil {
			return Metadata{}, fmt.Errorf("%w: cloud agent metadata: %w", kv.ErrCorrupt, err)
		}
	}
	return m, nil
}

// maxTimeMS is the end of the year 9999; larger values are not times.
const maxTimeMS = 253402300799999

func metadataTime(pb *aiserverv1.CloudAgentStatePersistedMetadata) time.Time {
	ms := pb.TimestampMs
	if old, ok := varintTime(pb.ProtoReflect().GetUnknown()); ok && ms == 0 {
		ms = old
	}
	if math.IsNaN(ms) || ms < 0 || ms > maxTimeMS {
		return time.UnixMilli(0)
	}
	return time.UnixMilli(int64(ms))
}

// varintTime finds the time of older rows among the unknown fields: the number is the
// same, the type differs.
func varintTime(unknown []byte) (float64, bool) {
	const timestampField = 3
	for len(unknown) > 0 {
		num, typ, n := protowire.ConsumeTag(unknown)
		if n < 0 {
			return 0, false
		}
		if num == timestampField && typ == protowire.VarintType {
			v, m := protowire.ConsumeVarint(unknown[n:])
			return float64(int64(v)), m >= 0
		}
		m := protowire.ConsumeFieldValue(num, typ, unknown[n:])
		if m < 0 {
			return 0, false
		}
		unknown = unknown[n+m:]
	}
	return 0, false
}

// Metadata returns the metadata of an agent as it is stored now, or an error that
// wraps ErrNotFound if the agent has none, as before its first state.
func (s *Store) Metadata(ctx context.Context, agent string) (Metadata, error) {
	m, _, err := s.metadata(ctx, agent)
	return m, err
}

func (s *Store) metadata(ctx context.Context, agent string) (Metadata, uint64, error) {
	if err := checkID("agent", agent); err != nil {
		return Metadata{}, 0, err
	}
	row, err := s.rows.Get(ctx, keyspace.AgentMetadata(agent))
	if errors.Is(err, kv.ErrNotFound) {
		return Metadata{}, 0, fmt.Errorf("metadata of agent %s: %w", agent, ErrNotFound)
	}
	if err != nil {
		return Metadata{}, 0, fmt.Errorf("read metadata of agent %s: %w", agent, err)
	}
	l := s.lane(agent)
	defer s.release(l)
	if m, ok := l.Value.cachedMetadata(row.Version); ok {
		return m, row.Version, nil
	}
	m, err := ParseMetadata(row.Value)
	if err != nil {
		return Metadata{}, 0, fmt.Errorf("agent %s: %w", agent, err)
	}
	l.Value.keepMetadata(m, row.Version)
	return m, row.Version, nil
}
