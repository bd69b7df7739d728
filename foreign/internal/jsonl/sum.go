package jsonl

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/stet-dev/stet/foreign"
)

// sumSize is how much of the end of a line its sum covers.
const sumSize = 256

// Sum returns a short text about a line. A mark that holds the sum of the line before it
// is recognised by Check.
func Sum(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE(line[max(0, len(line)-sumSize):])), 36)
}

// Sum is the Sum of the line as the file has it.
func (l Line) Sum() string {
	if l.Short {
		return Sum(l.tail)
	}
	return Sum(l.Data)
}

// Check returns foreign.ErrMark unless the line that ends at an offset of a file has a
// sum: the file was replaced since.
func Check(path string, at int64, sum string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	const more = 64 // for empty lines behind it
	from := max(0, at-sumSize-more)
	if at < 0 {
		return fmt.Errorf("%w: offset %d", foreign.ErrMark, at)
	}
	if err := skip(f, from); err != nil {
		return err
	}
	buf := make([]byte, at-from)
	if _, err := io.ReadFull(f, buf); foreign.Unreadable(err) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: offset %d: %w", foreign.ErrMark, at, err)
	}
	buf = bytes.TrimRight(buf, "\r\n")
	if Sum(buf[bytes.LastIndexByte(buf, '\n')+1:]) != sum {
		return fmt.Errorf("%w: another line ends at byte %d", foreign.ErrMark, at)
	}
	return nil
}
