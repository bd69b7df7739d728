package pgsearch

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// Blocks take clearly less than their entries: postings have hardly any repetitions, but
// some bytes are more frequent than others.
func TestBlocksAreCompressed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := rand.NewZipf(random, 1.1, 10, 20_000)
	b := newBuilder([]byte("salt"))
	for doc := range int64(700) {
		var text strings.Builder
		for range 200 {
			text.WriteString(strconv.FormatUint(words.Uint64()*7919, 36) + " ")
		}
		b.add(doc, text.String(), "")
	}
	entries, stored := 0, 0
	err := b.write(func(blk block) error {
		raw, err := decompress(blk.data)
		entries, stored = entries+len(raw), stored+len(blk.data)
		return err
	})
	if err != nil || float64(stored) > 0.97*float64(entries) {
		t.Errorf("blocks of %d bytes take %d, %v", entries, stored, err)
	}
}
