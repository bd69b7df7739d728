package conversation

import (
	"fmt"
	"math"
	"strings"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// MaxSeq is the highest number that a save or an epoch can have. A higher one is
// damage, and none can follow it.
const MaxSeq = math.MaxInt64

// maxTimeMS is the end of the year 9999; larger values are not times.
const maxTimeMS = 253402300799999

// CheckRow returns the error that a reader of this package would return for a row,
// and accepts rows of other packages. Importers call it before they write anything.
// It applies the same rules as the readers.
func CheckRow(row kv.Row) error {
	for _, family := range rowRules {
		if family.rows.Contains(row.Key) {
			return family.check(row)
		}
	}
	return nil
}

// rowRules defines how each kind of row is read.
var rowRules = []struct {
	rows  kv.Range
	check func(kv.Row) error
}{
	{keyspace.Conversations(), func(row kv.Row) error { _, err := decodeConversation(row); return err }},
	{keyspace.AllSaves(), func(row kv.Row) error { _, err := decodeSave(row); return err }},
	{keyspace.Heads(), func(row kv.Row) error { _, err := decodeHead(row); return err }},
	{keyspace.AllMessageHeads(), func(row kv.Row) error { _, err := decodeMessageHead(row); return err }},
	{keyspace.ByTimes(), checkByTime},
	{keyspace.AllConversationsOf(), checkConversationOf},
	{keyspace.AllChanged(), func(row kv.Row) error { _, err := idsOf(row, keyspace.AllChanged().Start, 1); return err }},
	{keyspace.Cutoffs(), func(row kv.Row) error { _, err := decodeCutoff(row); return err }},
	{only(filtersKey), func(row kv.Row) error { _, err := decodeFilters(row); return err }},
	{keyspace.Pins(), func(row kv.Row) error { _, err := decodePin(row); return err }},
}

// corrupt returns the error for a damaged row.
func corrupt(row kv.Row, format string, args ...any) error {
	return fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, fmt.Errorf(format, args...))
}

// idsOf returns the ids that a key holds after its prefix.
func idsOf(row kv.Row, prefix string, n int) ([]string, error) {
	parts := strings.Split(strings.TrimPrefix(row.Key, prefix), ":")
	if len(parts) != n {
		return nil, corrupt(row, "its key has %d parts, not %d", len(parts), n)
	}
	for i, p := range parts {
		parts[i] = keyspace.Unescape(p)
		if keyspace.Escape(parts[i]) != p {
			return nil, corrupt(row, "its key is malformed")
		}
		if err := checkID("row", parts[i]); err != nil {
			return nil, corrupt(row, "%w", err)
		}
	}
	return parts, nil
}

func checkTime(row kv.Row, ms int64) error {
	if ms < 0 || ms > maxTimeMS {
		return corrupt(row, "%d is not a time", ms)
	}
	return nil
}

// decodeConversation reads the record of a conversation.
func decodeConversation(row kv.Row) (*stetv1.ConversationRecord, error) {
	rec := new(stetv1.ConversationRecord)
	if err := rowformat.Decode(row, rec, recordFormat); err != nil {
		return nil, err
	}
	ids, err := idsOf(row, keyspace.Conversations().Start, 1)
	switch {
	case err != nil:
		return nil, err
	case rec.Id != ids[0]:
		return nil, corrupt(row, "conversation id %q", rec.Id)
	case rec.Epoch > MaxSeq:
		return nil, corrupt(row, "epoch %d", rec.Epoch)
	case rec.ForkedFromSave > MaxSeq:
		return nil, corrupt(row, "fork of save %d", rec.ForkedFromSave)
	}
	if rec.ForkedFrom != "" {
		if err := checkID("conversation", rec.ForkedFrom); err != nil {
			return nil, corrupt(row, "forked from: %w", err)
		}
	}
	return rec, checkTime(row, rec.CreatedAtMs)
}

// checkSave checks the rules for a save beyond its root.
func checkSave(row kv.Row, rec *stetv1.SaveRecord) error {
	ids, err := idsOf(row, keyspace.AllSaves().Start, 2)
	if err != nil {
		return err
	}
	n, err := keyspace.ParseNumber(ids[1])
	switch {
	case err != nil:
		return corrupt(row, "%w", err)
	case n != rec.Seq || rec.Seq == 0 || rec.Seq > MaxSeq:
		return corrupt(row, "save number %d", rec.Seq)
	case rec.Parent >= rec.Seq: // falling numbers also exclude cycles
		return corrupt(row, "save %d after %d", rec.Seq, rec.Parent)
	case rec.RewoundFrom >= rec.Seq:
		return corrupt(row, "save %d, rewound from %d", rec.Seq, rec.RewoundFrom)
	}
	if rec.MessageId != "" {
		if err := checkID("message", rec.MessageId); err != nil {
			return corrupt(row, "%w", err)
		}
	}
	return checkTime(row, rec.TimeMs)
}

// decodeHead reads the head of a conversation.
func decodeHead(row kv.Row) (blob.ID, error) {
	if _, err := idsOf(row, keyspace.Heads().Start, 1); err != nil {
		return blob.ID{}, err
	}
	return parseHead(row)
}

// decodeMessageHead reads the head of a message.
func decodeMessageHead(row kv.Row) (blob.ID, error) {
	if _, err := idsOf(row, keyspace.AllMessageHeads().Start, 2); err != nil {
		return blob.ID{}, err
	}
	return parseHead(row)
}

// checkByTime checks the rules for a row that lists a conversation.
func checkByTime(row kv.Row) error {
	ids, err := idsOf(row, keyspace.ByTimes().Start, 2)
	if err != nil {
		return err
	}
	ms, err := keyspace.ParseNumber(ids[0])
	if err != nil {
		return corrupt(row, "%w", err)
	}
	return checkTime(row, int64(ms))
}

// checkConversationOf checks the rules for a row that lists a conversation under its
// workspace or agent. One of an earlier release has no span.
func checkConversationOf(row kv.Row) error {
	in := keyspace.AllConversationsOf().Start
	if strings.Count(row.Key[len(in):], ":") == 1 {
		_, err := idsOf(row, in, 2)
		return err
	}
	_, err := idsOf(row, in, 3)
	if _, _, ok := keyspace.ParseConversationOf(row.Key); err == nil && !ok {
		err = corrupt(row, "its key is malformed")
	}
	return err
}

// nextSeq returns the number after another one.
func nextSeq(seq uint64) (uint64, error) {
	if seq >= MaxSeq {
		return 0, invalid("the history is full: save %d has the highest possible number", seq)
	}
	return seq + 1, nil
}
