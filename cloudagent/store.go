package cloudagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lane"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// Store keeps cloud agents in a blob store and a row store. It is safe for
// concurrent use; several processes may use the same rows.
type Store struct {
	blobs  blob.Store
	rows   kv.Store
	opts   Options
	lanes  lane.Set[cache]
	tails  tails
	queues queues
	// conversations are those that agents work on.
	conversations *conversation.Store
}

// Options configure a Store; nil gives the defaults.
type Options struct {
	// Now is the clock; time.Now by default. It is only for display.
	Now func() time.Time
	// Poll is how often followers look for events without a hint, 1 s by default.
	Poll time.Duration
	// CachedAgents is how many agents are held in memory, 256 by default.
	CachedAgents int
	// Presigner creates addresses of snapshots; without it no addresses are available.
	Presigner Presigner
	// LegacySnapshots turns off cloud_agent_enable_blob_storage_format_v1: snapshots
	// without a format get the legacy one instead of v1.
	LegacySnapshots bool
}

// New returns the store of the cloud agents in the given blobs and rows.
func New(blobs blob.Store, rows kv.Store, opts *Options) *Store {
	s := &Store{blobs: blobs, rows: rows}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.Poll <= 0 {
		s.opts.Poll = time.Second
	}
	if s.opts.CachedAgents <= 0 {
		s.opts.CachedAgents = 256
	}
	s.lanes.Keep = s.opts.CachedAgents
	s.conversations = conversation.New(blobs, rows, &conversation.Options{Now: s.opts.Now})
	return s
}

func (s *Store) nowMS() int64 { return max(0, s.opts.Now().UnixMilli()) }

// checkID rejects texts that cannot be an id.
func checkID(what, id string) error {
	if err := keyspace.CheckID(id); err != nil {
		return invalid("%s id %v", what, err)
	}
	return nil
}

// loaded is a record and the conditions for changing it.
type loaded struct {
	rec    *stetv1.AgentRecord // must not be changed: shared with the cache
	expect []kv.Expect
}

// load reads the record of an agent. An imported agent has only metadata; it gets a
// record with its first change.
func (s *Store) load(ctx context.Context, l *agentLane) (loaded, error) {
	key := keyspace.Agent(l.Name)
	row, err := s.rows.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return s.adopt(ctx, l.Name)
	}
	if err != nil {
		return loaded{}, fmt.Errorf("read agent %s: %w", l.Name, err)
	}
	expect := []kv.Expect{{Key: key, Version: row.Version}}
	if rec, version := l.Value.cachedRecord(); version == row.Version {
		return loaded{rec: rec, expect: expect}, nil
	}
	rec, err := decodeRecord(row)
	if err != nil {
		return loaded{}, err
	}
	l.Value.keepRecord(rec, row.Version)
	return loaded{rec: rec, expect: expect}, nil
}

func decodeRecord(row kv.Row) (*stetv1.AgentRecord, error) {
	rec := new(stetv1.AgentRecord)
	if err := proto.Unmarshal(row.Value, rec); err != nil {
		return nil, fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, err)
	}
	if err := rowformat.Check(row.Key, rec.Format, recordFormat); err != nil {
		return nil, err
	}
	if rec.Id != keyspace.Last(row.Key) || rec.Epoch == 0 {
		return nil, fmt.Errorf("%w: row %q is of agent %q", kv.ErrCorrupt, row.Key, rec.Id)
	}
	if rec.Head.GetSeq() >= maxSeq || rec.StateAt.GetSeq() > rec.Head.GetSeq() {
		return nil, fmt.Errorf("%w: row %q says state %d of %d events", kv.ErrCorrupt, row.Key, rec.StateAt.GetSeq(), rec.Head.GetSeq())
	}
	if err := checkID("agent", rec.Id); err != nil {
		return nil, fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, err)
	}
	for _, ms := range []int64{rec.CreatedMs, rec.UpdatedMs} {
		if ms < 0 || ms > maxTimeMS {
			return nil, fmt.Errorf("%w: row %q: %d is not a time", kv.ErrCorrupt, row.Key, ms)
		}
	}
	if len(rec.State) > 0 {
		if _, err := blob.IDFromBytes(rec.State); err != nil {
			return nil, fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, err)
		}
	}
	return rec, nil
}

// adopt makes a record from metadata. Its log is empty: the offset of the source
// stands for the beginning of the log here.
func (s *Store) adopt(ctx context.Context, agent string) (loaded, error) {
	m, version, err := s.metadata(ctx, agent)
	if errors.Is(err, ErrNotFound) {
		return loaded{}, fmt.Errorf("agent %s: %w", agent, ErrNotFound)
	}
	if err != nil {
		return loaded{}, err
	}
	// Until the record is stored, every reader must see the same epoch.
	start := Offset{}.next([]byte(fmt.Sprintf("%s %s %s", agent, m.State, m.OffsetKey)))
	start.Seq = 0
	rec := &stetv1.AgentRecord{
		Format: recordFormat, Id: agent, Conversation: agent, CreatedMs: m.Time.UnixMilli(), UpdatedMs: m.Time.UnixMilli(),
		Epoch: start.Tag, Head: start.record(), StateAt: start.record(), Status: m.Status,
		ForeignOffset: m.OffsetKey,
	}
	if !m.State.IsZero() {
		rec.State = m.State.Bytes()
	}
	return loaded{rec: rec, expect: []kv.Expect{
		{Key: keyspace.Agent(agent)}, {Key: keyspace.AgentMetadata(agent), Version: version},
	}}, nil
}

// stateOf returns the id of a record's state, zero if there is none. Records are
// checked when they are read.
func stateOf(rec *stetv1.AgentRecord) blob.ID {
	if len(rec.State) != blob.IDSize {
		return blob.ID{}
	}
	return blob.ID(rec.State)
}
