package keyring

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"
)

func sumHex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func FuzzDecode(f *testing.F) {
	const ringID = "00112233445566778899aabbccddeeff"
	l, err := rawUnlock(1).relock(ringID)
	if err != nil {
		f.Fatal(err)
	}
	good, err := newState(ringID, l).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format":"stet-keyring","version":2}`))
	f.Add([]byte(`{"format":"stet-keyring","version":1,"body":null,"sum":"` + sumHex([]byte("null")) + `","mac":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeState(data, rawUnlock(1).opener())
		if err == nil {
			if s.id != ringID {
				t.Fatalf("opened a ring that nobody made: %q", s.id)
			}
			return
		}
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrWrongKey) && !errors.Is(err, ErrWeak) {
			t.Fatalf("untyped error: %v", err)
		}
	})
}
