package checkpoint

import (
	"fmt"
	"strings"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// A writer of a store decides what a rewind writes to the disk. A program with a
// set-user-id bit would run with the rights of the user who rewinds, possibly root,
// so these bits are restored only if this store captured them itself.

// specialBits are the mode bits that are not accepted from other stores.
const specialBits = 0o7000

// MarkReceived marks a checkpoint of another store in a row that is about to be
// stored, and returns other rows unchanged. Imports call it.
func MarkReceived(row kv.Set) (kv.Set, error) {
	if !keyspace.Checkpoints().Contains(row.Key) {
		return row, nil
	}
	var m stetv1.CheckpointRecord
	if err := unmarshal(row.Value, &m); err != nil {
		return row, fmt.Errorf("row %q: %w", row.Key, err)
	}
	if m.Received {
		return row, nil
	}
	m.Received = true
	value, err := marshal(&m)
	return kv.Set{Key: row.Key, Value: value}, err
}

// mask removes the special bits from the results of actions, unless the same content
// or directory has them now. An action without other changes becomes Keep.
func mask(actions []Action) {
	for i := range actions {
		a := &actions[i]
		if !a.Changes() || a.After == nil {
			continue
		}
		bits := a.After.Mode & specialBits
		if b := a.Before; b != nil && b.Kind == a.After.Kind && (isDir(b) || b.ID == a.After.ID) {
			bits &^= b.Mode
		}
		if bits == 0 {
			continue
		}
		after := *a.After
		after.Mode &^= bits
		a.After = &after
		if sameState(a.Before, a.After) {
			a.Kind, a.After = Keep, a.Before
		}
		a.left(WhyMasked, "without its "+bitNames(bits)+": the checkpoint came from another store")
	}
}

func bitNames(bits uint32) string {
	var names []string
	for _, b := range []struct {
		bit  uint32
		name string
	}{{0o4000, "set-user-id bit"}, {0o2000, "set-group-id bit"}, {0o1000, "sticky bit"}} {
		if bits&b.bit != 0 {
			names = append(names, b.name)
		}
	}
	return strings.Join(names, " and ")
}
