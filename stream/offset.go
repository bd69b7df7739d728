package stream

import (
	"fmt"
	"strconv"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// Offset is a place in a stream, between two appends. The zero value is its
// beginning. Its text is two numbers of sixteen digits with an underscore between
// them; the texts of one stream sort like its places.
type Offset struct {
	// Seq is the number of appends before the place.
	Seq uint64
	// Bytes is the number of bytes before it, as they are stored. It distinguishes a
	// place in this stream from one in an earlier stream under the same path.
	Bytes uint64
}

// offsetDigits is the width of both numbers.
const offsetDigits = 16

// maxOffset is the largest number that has so many digits.
const maxOffset = 9999999999999999

// String returns the text of the offset.
func (o Offset) String() string { return fmt.Sprintf("%016d_%016d", o.Seq, o.Bytes) }

// ParseOffset is the inverse of String. Every offset has exactly one text.
func ParseOffset(s string) (Offset, error) {
	if len(s) != 2*offsetDigits+1 || s[offsetDigits] != '_' {
		return Offset{}, badOffset(s)
	}
	seq, seqErr := strconv.ParseUint(s[:offsetDigits], 10, 64)
	bytes, bytesErr := strconv.ParseUint(s[offsetDigits+1:], 10, 64)
	if seqErr != nil || bytesErr != nil {
		return Offset{}, badOffset(s)
	}
	o := Offset{Seq: seq, Bytes: bytes}
	if o.String() != s { // such as one with a sign
		return Offset{}, badOffset(s)
	}
	return o, nil
}

func badOffset(s string) error { return fmt.Errorf("%w: %.64q", ErrInvalidOffset, s) }

// Before reports whether the place lies before another one of the same stream.
func (o Offset) Before(other Offset) bool { return o.Seq < other.Seq }

func (o Offset) record() *stetv1.StreamPosition {
	return &stetv1.StreamPosition{Seq: o.Seq, Bytes: o.Bytes}
}

func offsetOf(p *stetv1.StreamPosition) Offset {
	return Offset{Seq: p.GetSeq(), Bytes: p.GetBytes()}
}
