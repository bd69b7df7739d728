package sealed

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The vectors of the specification: one key for each value of the bit that is
// carried out of the sub-key.
func TestXAESVectors(t *testing.T) {
	for _, v := range []struct {
		key  byte
		aad  string
		want string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		x, err := newXAES(bytes.Repeat([]byte{v.key}, 32))
		if err != nil {
			t.Fatal(err)
		}
		aead, nonce, err := x.derive([]byte("ABCDEFGHIJKLMNOPQRSTUVWX"))
		if err != nil {
			t.Fatal(err)
		}
		got := hex.EncodeToString(aead.Seal(nil, nonce, []byte("XAES-256-GCM"), []byte(v.aad)))
		if got != v.want {
			t.Errorf("key %d: got %s, want %s", v.key, got, v.want)
		}
	}
}
