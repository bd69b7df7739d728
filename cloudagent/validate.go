package cloudagent

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// maxSeq limits the numbers of events, so that the next one does not overflow.
const maxSeq = math.MaxInt64

// DecodeAgent reads the record of an agent.
func DecodeAgent(row kv.Row) (Agent, error) {
	rec, err := decodeRecord(row)
	if err != nil {
		return Agent{}, err
	}
	return agentOf(rec), nil
}

// CheckRow returns the error that a reader of this package would return for a row,
// and nil for rows of other packages. Importers call it before they write anything.
// It applies the same rules as the readers.
func CheckRow(row kv.Row) error {
	var err error
	switch {
	case keyspace.Agents().Contains(row.Key):
		_, err = decodeRecord(row)
	case keyspace.AllAgentEvents().Contains(row.Key):
		_, err = decodeEvent(row)
		if agent := keyspace.Parts(row.Key)[2]; err == nil && checkID("agent", agent) != nil {
			err = fmt.Errorf("%w: row %q has an invalid agent id", kv.ErrCorrupt, row.Key)
		}
	case strings.HasSuffix(row.Key, keyspace.AgentMetadata("")):
		// Another version is allowed: readers report it, and nothing else fails.
		if _, err = ParseMetadata(row.Value); errors.Is(err, ErrMetadataVersion) {
			err = nil
		}
		if err != nil {
			err = fmt.Errorf("row %q: %w", row.Key, err)
		}
	}
	return err
}
