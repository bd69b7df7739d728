package cloudagent

import (
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/lane"
)

// agentLane is an agent in memory: the queue of its writers, and what was read last.
type agentLane = lane.Lane[cache]

// cache is what was read last of an agent.
type cache struct {
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
func (s *Store) lane(agent string) *agentLane { return s.lanes.Enter(agent) }

func (s *Store) release(l *agentLane) { s.lanes.Leave(l) }

func (c *cache) cachedRecord() (*stetv1.AgentRecord, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rec, c.recVersion
}

func (c *cache) keepRecord(rec *stetv1.AgentRecord, version uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rec, c.recVersion = rec, version
}

func (c *cache) cachedMetadata(version uint64) (Metadata, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.meta, c.metaVersion == version
}

func (c *cache) keepMetadata(m Metadata, version uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.meta, c.metaVersion = m, version
}

func (c *cache) cachedState(id blob.ID) *aiserverv1.CloudAgentState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stateID != id {
		return nil
	}
	return c.state
}

// keepState caches a state, which must not change afterwards.
func (c *cache) keepState(id blob.ID, state *aiserverv1.CloudAgentState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stateID, c.state = id, state
}
