package transfer

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
)

// ErrNewerFormat says that a row was written by a newer release.
var ErrNewerFormat = kv.ErrNewerFormat

// history is a conversation as one side has it.
type history = conversation.Records

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
	s.Seq, s.Parent, s.RewoundFrom, s.Branch, s.Original = 0, 0, 0, "", nil
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
	known := make(map[blob.ID]uint64, len(there.Saves))
	for _, s := range there.Saves {
		known[identity(s)] = s.GetSeq()
	}
	var headHere, headThere blob.ID
	if head := there.Head(); head != nil {
		headThere = identity(head)
	}
	behind := headThere.IsZero()
	for _, s := range here.Saves {
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
	case there.Conversation == nil:
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
	same := behind && len(numbers) == len(there.Saves)
	for from, to := range numbers {
		same = same && from == to
	}
	gone := make(map[uint64]bool)
	leads := make(map[uint64]bool)
	for _, s := range slices.Backward(here.Saves) {
		_, has := numbers[s.GetSeq()]
		if has || leads[s.GetSeq()] {
			leads[s.GetParent()] = true
		}
		gone[s.GetSeq()] = !has && (leads[s.GetSeq()] || same && s.GetSeq() < there.Head().GetSeq())
	}
	return gone
}
