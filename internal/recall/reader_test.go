package recall_test

import (
	"encoding/binary"
	"testing"

	"github.com/stet-dev/stet/internal/recall"
)

func TestReader(t *testing.T) {
	data := append(binary.AppendUvarint(nil, 300), 7, 'a', 'b', 9)
	r := recall.Read(data)
	if n, b, text := r.Number(), r.Byte(), string(r.Bytes(2)); n != 300 || b != 7 || text != "ab" || r.Len() != 1 {
		t.Errorf("read %d, %d, %q, and %d bytes are left", n, b, text, r.Len())
	}
	if n := r.Count(4); n != 0 || r.Bad() {
		t.Errorf("%d items in no bytes, bad: %t", n, r.Bad())
	}
	for name, read := range map[string]func(*recall.Reader) bool{
		"bytes":  func(r *recall.Reader) bool { return string(r.Bytes(3)) == "\x00\x00\x00" },
		"number": func(r *recall.Reader) bool { return r.Number() == 0 },
		"count":  func(r *recall.Reader) bool { return r.Count(1) == 0 },
	} {
		r := recall.Read([]byte{0x80})
		if !read(r) || !r.Bad() || r.Byte() != 0 {
			t.Errorf("%s: a result that was cut is not bad, or is not zero", name)
		}
	}
}
