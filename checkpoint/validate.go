package checkpoint

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

const (
	// maxNumber limits numbers of checkpoints and operations, so that the next one
	// does not overflow.
	maxNumber = math.MaxInt64
	// maxTimeMS is the end of the year 9999; larger values are not times.
	maxTimeMS = 253402300799999
	// nonceSize is the length of a workspace's nonce. A shorter one would match the
	// staging directories of others.
	nonceSize = 4
)

// CheckRow returns the error that a reader of this package would return for a row,
// and nil for rows of other packages. Importers call it before they write anything.
// It applies the same rules as the readers.
func CheckRow(row kv.Row) error {
	for _, family := range rowRules {
		if !family.rows.Contains(row.Key) {
			continue
		}
		if err := family.check(row); err != nil {
			return fmt.Errorf("row %q: %w", row.Key, err)
		}
		return nil
	}
	return nil
}

// rowRules defines how each kind of row is read.
var rowRules = []struct {
	rows  kv.Range
	check func(kv.Row) error
}{
	{keyspace.Checkpoints(), func(row kv.Row) error { _, err := readRecord(row); return err }},
	{keyspace.Workspaces(), func(row kv.Row) error { _, err := readWorkspace(row); return err }},
	{keyspace.Operations(), func(row kv.Row) error { _, err := readOperation(row); return err }},
	{keyspace.CheckpointPins(), func(row kv.Row) error { _, err := readPin(row); return err }},
	{keyspace.Journals(), func(row kv.Row) error { _, err := readJournal(row); return err }},
	{keyspace.AllWorkspaceCheckpoints(), checkListed},
	{keyspace.AllConversationCheckpoints(), checkListed},
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBadRecord, fmt.Sprintf(format, args...))
}

// checkID rejects an invalid checkpoint id: no id could follow it, and it would not
// be found.
//
// It reads the text itself: a list of ten thousand checkpoints checks twice as many ids.
func checkID(id string) error {
	ok := len(id) == ulid.EncodedSize && id[:len(maxTimeText)] <= maxTimeText // digits are in the order of their characters
	for i := 0; ok && i < len(id); i++ {
		ok = idDigits[id[i]]
	}
	if !ok {
		return bad("%q is not the id of a checkpoint", id)
	}
	return nil
}

// idDigits are the characters of ids, and maxTimeText begins that of the latest time.
var (
	idDigits    = digitsOf(strings.ToLower(ulid.Encoding))
	maxTimeText = strings.ToLower(timeText(maxTimeMS))
)

func digitsOf(alphabet string) (digits [256]bool) {
	for _, c := range []byte(alphabet) {
		digits[c] = true
	}
	return digits
}

// timeText returns the part of an id that is its time.
func timeText(ms uint64) string {
	var id ulid.ULID
	_ = id.SetTime(ms) // fails only beyond the last time of ULIDs
	return id.String()[:10]
}

// checkKeyID rejects an id that cannot be part of a key.
func checkKeyID(what, id string) error {
	if keyspace.CheckID(id) != nil {
		return bad("%q is not the id of a %s", id, what)
	}
	return nil
}

func checkTime(at time.Time) error {
	if ms := at.UnixMilli(); ms < 0 || ms > maxTimeMS {
		return bad("%d is not a time", ms)
	}
	return nil
}

// readRecord reads the row of a checkpoint.
func readRecord(row kv.Row) (*Record, error) {
	rec, err := decodeRecord(row.Value)
	if err != nil {
		return nil, err
	}
	if err := checkRecord(row.Key, rec); err != nil {
		return nil, fmt.Errorf("read checkpoint %q: %w", keyspace.Last(row.Key), err)
	}
	rec.version = row.Version
	return rec, nil
}

func checkRecord(key string, rec *Record) error {
	switch {
	case keyspace.Checkpoint(rec.ID) != key:
		return bad("it has the id %q", rec.ID)
	case rec.Number == 0 || rec.Number >= maxNumber:
		return bad("it has the number %d", rec.Number)
	case rec.Parent != "" && rec.Parent >= rec.ID: // ids only grow, which excludes cycles
		return bad("it comes after %q", rec.Parent)
	}
	if rec.Parent != "" {
		if err := checkID(rec.Parent); err != nil {
			return err
		}
	}
	if rec.Conversation != "" {
		if err := checkKeyID("conversation", rec.Conversation); err != nil {
			return err
		}
	}
	for _, err := range []error{checkID(rec.ID), checkKeyID("workspace", rec.Workspace), checkTime(rec.Time)} {
		if err != nil {
			return err
		}
	}
	return nil
}

// readWorkspace reads the row of a workspace.
func readWorkspace(row kv.Row) (*stetv1.WorkspaceRecord, error) {
	rec := new(stetv1.WorkspaceRecord)
	if err := unmarshal(row.Value, rec); err != nil {
		return nil, err
	}
	switch {
	case keyspace.Workspace(rec.Id) != row.Key:
		return nil, bad("it has the id %q", rec.Id)
	case rec.LastNumber >= maxNumber:
		return nil, bad("its latest checkpoint has the number %d", rec.LastNumber)
	case len(rec.Nonce) != nonceSize:
		return nil, bad("its nonce has %d bytes", len(rec.Nonce))
	}
	if rec.LastCheckpoint != "" {
		if err := checkID(rec.LastCheckpoint); err != nil {
			return nil, err
		}
	}
	return rec, checkKeyID("workspace", rec.Id)
}

// readOperation reads an entry of the log.
func readOperation(row kv.Row) (*Operation, error) {
	op, err := decodeOperation(row.Value)
	if err != nil {
		return nil, err
	}
	if op.Seq == 0 || op.Seq > maxNumber || keyspace.Operation(op.Seq) != row.Key {
		return nil, bad("it has the number %d", op.Seq)
	}
	return op, checkTime(op.Time)
}

// readPin reads the row of a pin. One of an earlier release has no workspace.
func readPin(row kv.Row) (Pin, error) {
	var m stetv1.CheckpointPin
	if err := unmarshal(row.Value, &m); err != nil {
		return Pin{}, err
	}
	key := keyspace.SharedCheckpointPin(m.Name)
	if m.Format == pinFormat {
		key = keyspace.CheckpointPin(m.Name, m.Workspace)
		if err := checkKeyID("workspace", m.Workspace); err != nil {
			return Pin{}, err
		}
	}
	if key != row.Key {
		return Pin{}, bad("it has the name %q in workspace %q", m.Name, m.Workspace)
	}
	pin := Pin{Name: m.Name, Checkpoint: m.Checkpoint, Time: time.UnixMilli(m.TimeMs)}
	if m.Format == pinFormat {
		pin.Workspace = m.Workspace
	}
	if err := checkTime(pin.Time); err != nil {
		return Pin{}, err
	}
	return pin, checkID(m.Checkpoint)
}

// readJournal reads the row of a running rewind.
func readJournal(row kv.Row) (*stetv1.JournalRecord, error) {
	rec := new(stetv1.JournalRecord)
	if err := unmarshal(row.Value, rec); err != nil {
		return nil, err
	}
	if keyspace.Journal(rec.Workspace) != row.Key {
		return nil, bad("it belongs to workspace %q", rec.Workspace)
	}
	_, err := optionalID(rec.Steps)
	return rec, err
}

// DecodeRecord reads the row of a checkpoint.
func DecodeRecord(row kv.Row) (*Record, error) { return readRecord(row) }

// DecodePin reads the row of a pin. One of an earlier release has no workspace; Pins adds it.
func DecodePin(row kv.Row) (Pin, error) { return readPin(row) }

// LastOf returns the id of the latest checkpoint that the row of a workspace names,
// or "".
func LastOf(row kv.Row) (string, error) {
	rec, err := readWorkspace(row)
	return rec.GetLastCheckpoint(), err
}

// checkListed checks the rules for a row that lists a checkpoint.
func checkListed(row kv.Row) error {
	parts := keyspace.Parts(row.Key)
	if len(parts) != 4 {
		return bad("its key has %d parts", len(parts))
	}
	if err := checkKeyID("list", parts[2]); err != nil {
		return err
	}
	return checkID(parts[3])
}
