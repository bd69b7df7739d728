package sqlite

import (
	"bytes"
	"encoding/binary"
	"io"
)

// Sizes in the library's log: a header, and frames of a header and a page each.
const (
	logHeaderSize   = 32
	frameHeaderSize = 24
	logMagic        = 0x377f0682 // the lowest bit is the byte order of checksums
)

// logReader reads a log without the library.
type logReader struct {
	r     io.ReaderAt
	salts [8]byte
	page  int64
	order binary.ByteOrder
	s0    uint32 // checksum of everything read so far
	s1    uint32
}

// readLog reads the header of a log; ok is false if there is no valid one.
func readLog(r io.ReaderAt) (l *logReader, ok bool, err error) {
	var h [logHeaderSize]byte
	if n, err := r.ReadAt(h[:], 0); n < len(h) {
		if err == io.EOF {
			return nil, false, nil
		}
		return nil, false, err
	}
	big := binary.BigEndian
	l = &logReader{r: r, salts: [8]byte(h[16:24]), page: int64(big.Uint32(h[8:])), order: binary.LittleEndian}
	if big.Uint32(h[:])&1 == 1 {
		l.order = big
	}
	l.sum(h[:24])
	ok = big.Uint32(h[:])&^1 == logMagic && big.Uint32(h[24:]) == l.s0 && big.Uint32(h[28:]) == l.s1 &&
		l.page >= 512 && l.page <= 65536
	return l, ok, nil
}

func (l *logReader) sum(data []byte) {
	s0, s1 := l.s0, l.s1
	for ; len(data) >= 8; data = data[8:] {
		s0 += l.order.Uint32(data) + s1
		s1 += l.order.Uint32(data[4:]) + s0
	}
	l.s0, l.s1 = s0, s1
}

// offset returns where a frame begins; the first one has the number 1.
func (l *logReader) offset(frame uint32) int64 {
	return logHeaderSize + int64(frame-1)*(frameHeaderSize+l.page)
}

// frameSum returns the checksum that a frame's header carries.
func (l *logReader) frameSum(frame uint32) (sum uint32, ok bool, err error) {
	var h [frameHeaderSize]byte
	if n, err := l.r.ReadAt(h[:], l.offset(frame)); n < len(h) {
		if err == io.EOF {
			return 0, false, nil
		}
		return 0, false, err
	}
	return binary.BigEndian.Uint32(h[20:]), bytes.Equal(h[8:16], l.salts[:]), nil
}

// frames calls fn for each frame that the library would accept, in order, until fn
// returns false. It can be called once.
func (l *logReader) frames(fn func(number uint32, commit bool) bool) error {
	buf := make([]byte, frameHeaderSize+l.page)
	for number := uint32(1); ; number++ {
		if n, err := l.r.ReadAt(buf, l.offset(number)); n < len(buf) {
			if err == io.EOF {
				return nil
			}
			return err
		}
		l.sum(buf[:8])
		l.sum(buf[frameHeaderSize:])
		big := binary.BigEndian
		valid := bytes.Equal(buf[8:16], l.salts[:]) && big.Uint32(buf[16:]) == l.s0 && big.Uint32(buf[20:]) == l.s1
		if !valid || !fn(number, big.Uint32(buf[4:]) != 0) {
			return nil
		}
	}
}

// committed reports whether the log holds anything.
func (l *logReader) committed() (found bool, err error) {
	err = l.frames(func(_ uint32, commit bool) bool {
		found = commit
		return !commit
	})
	return found, err
}

// intact reports whether the library would accept that many frames.
func (l *logReader) intact(frames uint32) (bool, error) {
	last := uint32(0)
	err := l.frames(func(number uint32, _ bool) bool {
		last = number
		return number < frames
	})
	return last >= frames, err
}
