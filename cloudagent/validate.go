package cloudagent

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// maxSeq bounds the numbers of events, so that the next one can always be counted.
const maxSeq = math.MaxInt64

// DecodeAgent reads the record of an agent.
func DecodeAgent(row kv.Row) (Agent, error) {
	rec, err := decodeRecord(row)
	if err != nil {
		return Agent{}, err
	}
	return agentOf(rec), nil
}

// CheckRow reports what a reader of this package would refuse about a row, and
// accepts the rows of others. Whoever takes rows from outside calls it before
// anything is written: the rules are those of the readers, in one place.
func CheckRow(row kv.Row) error {
	var err error
	switch {
	case keyspace.Agents().Contains(row.Key):
		_, err = decodeRecord(row)
	case keyspace.AllAgentEvents().Contains(row.Key):
		_, err = decodeEvent(row)
		if agent := keyspace.Parts(row.Key)[2]; err == nil && checkID("agent", agent) != nil {
			err = fmt.Errorf("%w: row %q is of an agent that cannot be", kv.ErrCorrupt, row.Key)
		}
	case strings.HasSuffix(row.Key, keyspace.AgentMetadata("")):
		// One of another version is there, and readers say so; nothing else fails with it.
		if _, err = ParseMetadata(row.Value); errors.Is(err, ErrMetadataVersion) {
			err = nil
		}
		if err != nil {
			err = fmt.Errorf("row %q: %w", row.Key, err)
		}
	}
	return err
}
