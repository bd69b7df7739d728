package cursor

import (
	"encoding/binary"
	"errors"
	"testing"
)

// header returns the start of a database of so many pages of 4,096 bytes.
func header(pages uint32) []byte {
	start := append([]byte(sqliteMagic), make([]byte, 4096-len(sqliteMagic))...)
	binary.BigEndian.PutUint16(start[16:], 4096)
	binary.BigEndian.PutUint32(start[28:], pages)
	binary.BigEndian.PutUint32(start[56:], 1)
	return start
}

// A file that a writer extends or cuts off between the parts of a look is not truncated.
func TestHeaderOfAFileThatIsWritten(t *testing.T) {
	short := seenHeader{start: header(11), size: 9 * 4096}
	logged := short
	logged.log = true
	for name, c := range map[string]struct {
		looks []seenHeader
		want  error
	}{
		"sound":                             {[]seenHeader{{start: header(11), size: 11 * 4096}}, nil},
		"a log has the rest":                {[]seenHeader{logged}, nil},
		"the writer ended during the look":  {[]seenHeader{short, {start: header(11), size: 11 * 4096}}, nil},
		"cut off by a vacuum":               {[]seenHeader{short, {start: header(9), size: 9 * 4096}}, nil},
		"a writer begins between the looks": {[]seenHeader{short, logged}, nil},
		"truncated":                         {[]seenHeader{short, short}, ErrTruncated},
		"truncated, after a change":         {[]seenHeader{short, {start: header(12), size: 9 * 4096}, {start: header(12), size: 9 * 4096}}, ErrTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			looks := c.looks
			_, err := settledHeader(func() (seenHeader, error) {
				if len(looks) == 0 {
					t.Fatal("it was looked at once more")
				}
				next := looks[0]
				looks = looks[1:]
				return next, nil
			}, false)
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if len(looks) > 0 {
				t.Errorf("%d looks are left", len(looks))
			}
		})
	}
}
