package checkpoint

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
)

// TestCheckIDReadsULIDs compares the check of ids with the library that makes them.
func TestCheckIDReadsULIDs(t *testing.T) {
	valid := func(id string) bool {
		parsed, err := ulid.ParseStrict(strings.ToUpper(id))
		return err == nil && strings.ToLower(parsed.String()) == id && parsed.Time() <= maxTimeMS
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	letters := strings.ToLower(ulid.Encoding) + "ilou/ÿA\x00"
	id := func(ms uint64) string {
		var u ulid.ULID
		_ = u.SetTime(ms)
		return strings.ToLower(u.String())
	}
	all := []string{"", "0", id(0), id(maxTimeMS), id(maxTimeMS + 1), id(ulid.MaxTime()), strings.Repeat("7z", 13), strings.Repeat("8", 26), strings.Repeat("é", 13)}
	for range 20_000 {
		text := []byte(id(rnd.Uint64N(2 * maxTimeMS)))
		for range rnd.IntN(3) {
			text[rnd.IntN(len(text))] = letters[rnd.IntN(len(letters))]
		}
		all = append(all, string(text), string(text[:rnd.IntN(len(text))]))
	}
	for _, text := range all {
		if got := checkID(text) == nil; got != valid(text) {
			t.Errorf("%q is accepted: %v, want %v", text, got, valid(text))
		}
	}
}
