package cloudagent

import (
	"context"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// lanes are the agents in memory. A lane serializes the writers of one agent in this
// process, so that their commits do not conflict, and caches what was read last.
type lanes struct {
	mu  sync.Mutex // guards all, and users of every lane
	all map[string]*lane
}

type lane struct {
	agent string
	users int
	turn  chan struct{} // holds a value during a write

	mu          sync.Mutex // guards what follows
	rec         *stetv1.AgentRecord
	recVersion  uint64
	meta        Metadata
	metaVersion uint64
	stateID     blob.ID
	state       *aiserverv1.CloudAgentState

	reachMu sync.Mutex // guards what follows
	reach   *graph.Set // blobs that belong to the agent; nil until needed
	reached Offset     // end of the log covered by reach
}

// lane returns the lane of an agent; release releases it.
func (s *Store) lane(agent string) *lane {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	l := s.lanes.all[agent]
	if l == nil {
		if s.lanes.all == nil {
			s.lanes.all = make(map[string]*lane)
		}
		s.evictLocked() // before the unused new one is added
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

// evictLocked makes room for one more by dropping unused agents in any order; reading
// one again is cheap.
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

// keepState caches a state, which must not change any more.
func (l *lane) keepState(id blob.ID, state *aiserverv1.CloudAgentState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stateID, l.state = id, state
}
