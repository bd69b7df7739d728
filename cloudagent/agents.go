package cloudagent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Status is what an agent is doing.
type Status = aiserverv1.CloudAgentWorkflowStatus

// The statuses that this package handles specially.
const (
	StatusNotYetStarted = aiserverv1.CloudAgentWorkflowStatus_CLOUD_AGENT_WORKFLOW_STATUS_NOT_YET_STARTED
	StatusArchived      = aiserverv1.CloudAgentWorkflowStatus_CLOUD_AGENT_WORKFLOW_STATUS_ARCHIVED
	StatusExpired       = aiserverv1.CloudAgentWorkflowStatus_CLOUD_AGENT_WORKFLOW_STATUS_EXPIRED
)

// checkStatus rejects numbers that no release of the format defines.
func checkStatus(s Status) error {
	if s.Descriptor().Values().ByNumber(s.Number()) == nil || s == 0 {
		return invalid("status %d is unknown", s)
	}
	return nil
}

// checkOpen rejects changes of an agent that has ended.
func checkOpen(rec *stetv1.AgentRecord) error {
	switch rec.Status {
	case StatusArchived:
		return ErrArchived
	case StatusExpired:
		return ErrExpired
	}
	return nil
}

// Terminal reports whether the status is final.
func Terminal(s Status) bool { return s == StatusArchived || s == StatusExpired }

// Spec describes a new agent.
type Spec struct {
	// ID names the agent. If it is empty, Create generates one.
	ID   string
	Name string
	// Conversation is an existing conversation that the agent works on. Saving a state
	// of the agent also saves it there. If it is empty, it is the id of the agent, whether
	// or not there is such a conversation.
	Conversation string
	Labels       map[string]string
	// Status is NOT_YET_STARTED unless given.
	Status Status
}

// Agent describes an agent.
type Agent struct {
	ID           string
	Name         string
	Conversation string
	Labels       map[string]string
	Created      time.Time
	Updated      time.Time
	Status       Status
	// Head is the place of the last event.
	Head Offset
	// State is the current state, zero if there is none.
	State blob.ID
	// StateAt is the place up to which the state includes the events.
	StateAt Offset
	// Properties are derived from the state when it is saved.
	Properties Properties
	// Origin is where the agent runs, if this is a copy; see Copy.
	Origin Origin
}

// Create makes an agent. It fails with ErrExists if the id is taken, and with
// conversation.ErrNotFound if there is no conversation of the given id.
func (s *Store) Create(ctx context.Context, spec Spec) (Agent, error) {
	var err error
	for range attempts {
		var rec *stetv1.AgentRecord
		if rec, err = s.tryCreate(ctx, &spec); err == nil {
			return agentOf(rec), nil
		}
		// The record of a conversation changes with its title, so only its existence is
		// required.
		var conflict *kv.ConflictError
		if !errors.As(err, &conflict) || spec.Conversation == "" || conflict.Key != keyspace.Conversation(spec.Conversation) {
			break
		}
	}
	if errors.Is(err, kv.ErrConflict) {
		err = ErrExists
	}
	return Agent{}, fmt.Errorf("create agent %s: %w", spec.ID, err)
}

func (s *Store) tryCreate(ctx context.Context, spec *Spec) (*stetv1.AgentRecord, error) {
	if spec.ID == "" {
		spec.ID = "bc-" + ulid.Make().String()
	}
	if err := checkID("agent", spec.ID); err != nil {
		return nil, err
	}
	if spec.Status == 0 {
		spec.Status = StatusNotYetStarted
	}
	if err := checkStatus(spec.Status); err != nil {
		return nil, err
	}
	b := &kv.Batch{Expect: absent(spec.ID)}
	if spec.Conversation != "" {
		present, err := s.conversations.Present(ctx, spec.Conversation)
		if err != nil {
			return nil, err
		}
		b.Expect = append(b.Expect, present)
	}
	rec := s.newRecord(*spec)
	set, err := encodeRecord(rec)
	if err != nil {
		return nil, err
	}
	b.Set = []kv.Set{set}
	return rec, s.rows.Commit(ctx, b)
}

// absent expects that there is no agent with an id.
func absent(id string) []kv.Expect {
	return []kv.Expect{{Key: keyspace.Agent(id)}, {Key: keyspace.AgentMetadata(id)}}
}

// newRecord returns the record of a new agent with an empty log.
func (s *Store) newRecord(spec Spec) *stetv1.AgentRecord {
	start := Offset{Tag: newEpoch()}
	return &stetv1.AgentRecord{
		Format: recordFormat, Id: spec.ID, Name: spec.Name, Conversation: cmp.Or(spec.Conversation, spec.ID), Labels: maps.Clone(spec.Labels),
		CreatedMs: s.nowMS(), UpdatedMs: s.nowMS(), Status: cmp.Or(spec.Status, StatusNotYetStarted),
		Epoch: start.Tag, Head: start.record(), StateAt: start.record(),
	}
}

func newEpoch() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return max(1, binary.BigEndian.Uint64(b[:]))
}

func encodeRecord(rec *stetv1.AgentRecord) (kv.Set, error) {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(rec)
	if err != nil {
		return kv.Set{}, fmt.Errorf("%w: record of agent %s: %w", ErrInvalid, rec.Id, err)
	}
	return kv.Set{Key: keyspace.Agent(rec.Id), Value: value}, nil
}

func agentOf(rec *stetv1.AgentRecord) Agent {
	return Agent{
		ID: rec.Id, Name: rec.Name, Conversation: rec.Conversation, Labels: maps.Clone(rec.Labels),
		Created: time.UnixMilli(rec.CreatedMs), Updated: time.UnixMilli(rec.UpdatedMs), Status: rec.Status,
		Head: offsetOf(rec.Head), State: stateOf(rec), StateAt: offsetOf(rec.StateAt), Properties: propertiesOf(rec.Properties),
		Origin: Origin{Address: rec.Origin.GetAddress(), Offset: rec.Origin.GetOffset()},
	}
}

// Get returns an agent as it is stored now.
func (s *Store) Get(ctx context.Context, agent string) (Agent, error) {
	if err := checkID("agent", agent); err != nil {
		return Agent{}, err
	}
	l := s.lane(agent)
	defer s.release(l)
	now, err := s.load(ctx, l)
	if err != nil {
		return Agent{}, err
	}
	out := agentOf(now.rec)
	if now.rec.Properties == nil && len(now.rec.State) > 0 {
		// Imported: its state has not been read yet. An unreadable state leaves the
		// properties unknown.
		out.Properties, _ = s.Properties(ctx, agent)
	}
	return out, nil
}

// Page selects a part of a list; the zero value is its beginning.
type Page struct {
	// After is the cursor from the previous page.
	After string
	// Limit is the largest number of agents, 100 by default and 1,000 at most.
	Limit int
}

// Unreadable is an agent that cannot be read, with the cause.
type Unreadable struct {
	ID  string
	Err error
}

// Listed is a page of a list.
type Listed struct {
	Agents []Agent
	// Damaged are the agents of the page that cannot be read.
	Damaged []Unreadable
	// Next is the cursor of the following page, empty after the last.
	Next string
}

// List returns agents in the order of their ids. Imported agents appear after their
// first change.
func (s *Store) List(ctx context.Context, page Page) (Listed, error) {
	if page.Limit <= 0 {
		page.Limit = 100
	}
	page.Limit = min(page.Limit, 1000)
	in := keyspace.Agents()
	if page.After != "" {
		if err := kv.CheckKey(keyspace.Agent(page.After)); err != nil {
			return Listed{}, invalid("cursor: %v", err)
		}
		in.Start = keyspace.Agent(page.After) + "\x00"
	}
	var out Listed
	last := ""
	for row, err := range kv.Each(ctx, s.rows, in, false) {
		if err != nil && (row.Key == "" || !kv.Damaged(err)) {
			return Listed{}, fmt.Errorf("list agents: %w", err)
		}
		if len(out.Agents)+len(out.Damaged) == page.Limit {
			out.Next = last
			break
		}
		var rec *stetv1.AgentRecord
		if err == nil {
			rec, err = decodeRecord(row)
		}
		if last = keyspace.Last(row.Key); err != nil {
			out.Damaged = append(out.Damaged, Unreadable{last, err})
			continue
		}
		out.Agents = append(out.Agents, agentOf(rec))
	}
	return out, nil
}

// Archive ends an agent: it accepts no more events, and the streams of its followers
// end. Archiving it again changes nothing.
func (s *Store) Archive(ctx context.Context, agent string) error {
	_, err := s.SetStatus(ctx, agent, StatusArchived, nil)
	return err
}

// Delete removes an agent with its log. The next collection removes its blobs. A new
// agent with the same id has a different history: an offset of the old one does not
// resume in it.
func (s *Store) Delete(ctx context.Context, agent string) error {
	if err := checkID("agent", agent); err != nil {
		return err
	}
	l := s.lane(agent)
	defer s.release(l)
	if err := l.Begin(ctx); err != nil {
		return err
	}
	defer l.End()
	for range attempts {
		now, err := s.load(ctx, l)
		if err != nil {
			return err
		}
		err = s.rows.Commit(ctx, &kv.Batch{
			Expect:      now.expect,
			Delete:      []string{keyspace.Agent(agent), keyspace.AgentMetadata(agent)},
			DeleteRange: []kv.Range{keyspace.AgentEvents(agent, 0)},
		})
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("delete agent %s: %w", agent, err)
		}
		return nil
	}
	return fmt.Errorf("delete agent %s: %w", agent, kv.ErrConflict)
}
