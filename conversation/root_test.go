package conversation

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

// Stepping over records and splitting a root see the same records, also in bytes
// that are not a root.
func TestEachRecordIsASplitRoot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var raw []byte
		for range rapid.IntRange(0, 8).Draw(rt, "records") {
			num := protowire.Number(rapid.IntRange(1, 40).Draw(rt, "num"))
			if rapid.Bool().Draw(rt, "bytes") {
				raw = append(raw, bytesRecord(num, make([]byte, rapid.IntRange(0, 300).Draw(rt, "size")))...)
			} else {
				raw = protowire.AppendVarint(protowire.AppendTag(raw, num, protowire.VarintType), rapid.Uint64().Draw(rt, "value"))
			}
		}
		raw = raw[:len(raw)-min(len(raw), rapid.IntRange(0, 3).Draw(rt, "cut"))]
		raw = append(raw, rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(rt, "noise")...)

		var got []record
		err := eachRecord(raw, func(num protowire.Number, rec []byte) { got = append(got, record{num: num, raw: rec}) })
		want, wantErr := splitRoot(raw)
		if (err == nil) != (wantErr == nil) {
			rt.Fatalf("%x: %v, want %v", raw, err, wantErr)
		}
		if err != nil {
			return
		}
		if len(got) != len(want) {
			rt.Fatalf("%x: %d records, want %d", raw, len(got), len(want))
		}
		for i := range want {
			if got[i].num != want[i].num || !bytes.Equal(got[i].raw, want[i].raw) {
				rt.Fatalf("%x: record %d is %d %x, want %d %x", raw, i, got[i].num, got[i].raw, want[i].num, want[i].raw)
			}
		}
	})
}
