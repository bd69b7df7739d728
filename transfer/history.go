package transfer

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// ErrNewerFormat says that a row was written by a newer release.
var ErrNewerFormat = kv.ErrNewerFormat

// history is the history of a conversation on one side.
type history struct {
	id      string
	record  *stetv1.ConversationRecord // nil if there is none
	version uint64                     // of its row
	saves   []*stetv1.SaveRecord       // by number
}

func (h *history) head() *stetv1.SaveRecord {
	if len(h.saves) == 0 {
		return nil
	}
	return h.saves[len(h.saves)-1]
}

// listedAt is the time in the list of conversations.
func (h *history) listedAt() int64 {
	if head := h.head(); head != nil {
		return head.GetTimeMs()
	}
	return h.record.GetCreatedAtMs()
}

func load(ctx context.Context, rows kv.Store, id string) (*history, error) {
	h := &history{id: id}
	row, err := rows.Get(ctx, keyspace.Conversation(id))
	if errors.Is(err, kv.ErrNotFound) {
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	h.record, h.version = new(stetv1.ConversationRecord), row.Version
	if err := decode(row, h.record); err != nil {
		return nil, err
	}
	for row, err := range rows.Scan(ctx, keyspace.Saves(id), kv.ScanOptions{}) {
		if err != nil {
			return nil, err
		}
		save := new(stetv1.SaveRecord)
		if err := decode(row, save); err != nil {
			return nil, err
		}
		h.saves = append(h.saves, save)
	}
	return h, nil
}

// decode reads a row by the rules of its readers: rows that they reject are not
// transferred or built upon.
func decode(row kv.Row, into proto.Message) error {
	for _, check := range []func(kv.Row) error{conversation.CheckRow, checkpoint.CheckRow} {
		if err := check(row); err != nil {
			return err
		}
	}
	return proto.Unmarshal(row.Value, into)
}

func encode(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// identity identifies a save independently of its place in a history: the same save
// may have another number, parent and branch in another store.
func identity(s *stetv1.SaveRecord) blob.ID {
	s = proto.CloneOf(s)
	s.Seq, s.Parent, s.RewoundFrom, s.Branch = 0, 0, 0, ""
	raw, err := encode(s)
	if err != nil { // invalid UTF-8, which decoding rejects
		return blob.ID{}
	}
	return blob.Sum(raw)
}

// plan is what to do with the saves of a conversation.
type plan struct {
	status  Status
	add     []*stetv1.SaveRecord // with their numbers at the source
	numbers map[uint64]uint64    // of saves at the source → at the target
	base    *stetv1.SaveRecord   // the latest save at the source that the target has, or nil
}

// compare makes a plan. The target's head may be moved if it is one of the source's
// saves: then nothing is left behind.
func compare(here, there *history) plan {
	p := plan{numbers: make(map[uint64]uint64)}
	known := make(map[blob.ID]uint64, len(there.saves))
	for _, s := range there.saves {
		known[identity(s)] = s.GetSeq()
	}
	var headHere, headThere blob.ID
	if head := there.head(); head != nil {
		headThere = identity(head)
	}
	behind := headThere.IsZero()
	for _, s := range here.saves {
		name := identity(s)
		behind = behind || name == headThere
		headHere = name
		if seq, ok := known[name]; ok {
			p.numbers[s.GetSeq()], p.base = seq, s
		} else {
			p.add = append(p.add, s)
		}
	}
	gone := forgotten(here, there, p.numbers, behind)
	p.add = slices.DeleteFunc(p.add, func(s *stetv1.SaveRecord) bool { return gone[s.GetSeq()] })
	_, has := known[headHere]
	switch {
	case there.record == nil:
		p.status = Created
	case headHere == headThere:
		p.status, p.add = Current, nil
	case has || headHere.IsZero():
		p.status, p.add = Ahead, nil
	case behind:
		p.status = Updated
	default:
		p.status = Diverged
	}
	return p
}

// forgotten returns the saves at the source that a policy of the target has removed
// there: ancestors of saves that it has and, if it has only saves of the source under
// the same numbers, all before its head. Adding them again would make an old state
// the head for a while, and shift all numbers.
func forgotten(here, there *history, numbers map[uint64]uint64, behind bool) map[uint64]bool {
	same := behind && len(numbers) == len(there.saves)
	for from, to := range numbers {
		same = same && from == to
	}
	gone := make(map[uint64]bool)
	leads := make(map[uint64]bool)
	for _, s := range slices.Backward(here.saves) {
		_, has := numbers[s.GetSeq()]
		if has || leads[s.GetSeq()] {
			leads[s.GetParent()] = true
		}
		gone[s.GetSeq()] = !has && (leads[s.GetSeq()] || same && s.GetSeq() < there.head().GetSeq())
	}
	return gone
}
