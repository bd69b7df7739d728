package cloudagent

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// Offset is a place in an agent's log: after its event Seq. Its text is sixteen hex
// digits of Seq, a dash, and the tag in hex; offsets of one log sort like their
// events.
type Offset struct {
	// Seq is the number of the event, from 1; 0 is the place before the first.
	Seq uint64
	// Tag is computed over the log up to here. Two histories have different tags from
	// the first difference on.
	Tag uint64
}

// String returns the text of the offset.
func (o Offset) String() string { return fmt.Sprintf("%016x-%x", o.Seq, o.Tag) }

// ParseOffset is the inverse of String. Every offset has exactly one text.
func ParseOffset(s string) (Offset, error) {
	seq, tag, ok := strings.Cut(s, "-")
	if !ok || len(seq) != 16 {
		return Offset{}, badOffset(s)
	}
	var o Offset
	var err error
	if o.Seq, err = strconv.ParseUint(seq, 16, 64); err != nil {
		return Offset{}, badOffset(s)
	}
	if o.Tag, err = strconv.ParseUint(tag, 16, 64); err != nil {
		return Offset{}, badOffset(s)
	}
	if o.String() != s {
		return Offset{}, badOffset(s)
	}
	return o, nil
}

func badOffset(s string) error { return fmt.Errorf("%w: %.64q", ErrInvalidOffset, s) }

// next returns the place after an encoded event.
func (o Offset) next(event []byte) Offset {
	h := sha256.New()
	var before [16]byte
	binary.BigEndian.PutUint64(before[:8], o.Tag)
	binary.BigEndian.PutUint64(before[8:], o.Seq+1)
	h.Write(before[:])
	h.Write(event)
	tag := binary.BigEndian.Uint64(h.Sum(nil))
	if tag == 0 { // 0 is the tag in logs of other programs
		tag = 1
	}
	return Offset{Seq: o.Seq + 1, Tag: tag}
}

func (o Offset) record() *stetv1.AgentPosition {
	return &stetv1.AgentPosition{Seq: o.Seq, Tag: o.Tag}
}

func offsetOf(p *stetv1.AgentPosition) Offset {
	return Offset{Seq: p.GetSeq(), Tag: p.GetTag()}
}
