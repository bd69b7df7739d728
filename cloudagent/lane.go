package cloudagent

import (
	"context"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// lanes are the agents in memory. A lane lets the writers of one agent in this
// process pass one at a time, so that they do not make each other's commits
// fail, and holds what was read last.
type lanes struct {
	mu  sync.Mutex // guards all, and users of every lane
	all map[string]*lane
}

type lane struct {
	agent string
	users int
	turn  chan struct{} // holds a value while somebody writes

	mu          sync.Mutex // guards what follows
	rec         *stetv1.AgentRecord
	recVersion  uint64
	meta        Metadata
	metaVersion uint64
	stateID     blob.ID
	state       *aiserverv1.CloudAgentState

	reachMu sync.Mutex // guards what follows
	reach   *graph.Set // blobs that belong to the agent; nil until needed
	reached Offset     // up to where reach covers the log
}

// lane returns the lane of an agent; release gives it back.
func (s *Store) lane(agent string) *lane {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	l := s.lanes.all[agent]
	if l == nil {
		if s.lanes.all == nil {
			s.lanes.all = make(map[string]*lane)
		}
		s.evictLocked() // before the new one is there, which nobody uses yet
		l = &lane{agent: agent, turn: make(chan struct{}, 1)}
		s.lanes.all[agent] = l
	}
	l.users++
	return l
}

func (s *Store) release(l *lane) {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	l.users--
}

// evictLocked makes room for one more by forgetting agents that nobody uses now, in
// no order: what is needed again is one read away.
func (s *Store) evictLocked() {
	for agent, l := range s.lanes.all {
		if len(s.lanes.all) < s.opts.CachedAgents {
			return
		}
		if l.users == 0 {
			delete(s.lanes.all, agent)
		}
	}
}

// begin waits for the turn to write; end passes it on.
func (l *lane) begin(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lane) end() { <-l.turn }

func (l *lane) cachedRecord() (*stetv1.AgentRecord, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rec, l.recVersion
}

func (l *lane) keepRecord(rec *stetv1.AgentRecord, version uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec, l.recVersion = rec, version
}

func (l *lane) cachedMetadata(version uint64) (Metadata, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.meta, l.metaVersion == version
}

func (l *lane) keepMetadata(m Metadata, version uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meta, l.metaVersion = m, version
}

func (l *lane) cachedState(id blob.ID) *aiserverv1.CloudAgentState {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stateID != id {
		return nil
	}
	return l.state
}

// keepState takes a state that nobody changes any more.
func (l *lane) keepState(id blob.ID, state *aiserverv1.CloudAgentState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stateID, l.state = id, state
}
