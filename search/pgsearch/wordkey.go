package pgsearch

import (
	"bytes"
	"unicode/utf8"
)

// maxKey is the size of the longest key.
const maxKey = 10

// wordKey stands for a word in the index. Words are not stored: until it is merged, an
// index keeps only numbers of a removed conversation. A key is a chain of hashes of
// beginnings of the word, so that words with the same beginning are together and can be
// looked up by it, and one of the word itself. Different words may have the same key by
// chance; hits are compared with their texts.
type wordKey struct {
	size  byte
	bytes [maxKey]byte
}

// beginnings are the lengths, in characters, that have a part of the key each. The first
// part has three bytes, the others have one, the word itself has two or, if it is long, one.
var beginnings = []int{3, 4, 5, 6, 8, 12}

// hash is FNV-1a with a last step that spreads what similar words have in common.
func hash(salt []byte, text string) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range salt {
		h = (h ^ uint64(b)) * 1099511628211
	}
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	h ^= h >> 31
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>29
}

func (k *wordKey) add(bytes ...byte) {
	copy(k.bytes[k.size:], bytes)
	k.size += byte(len(bytes))
}

// part adds a hash of a beginning.
func (k *wordKey) part(h uint64) {
	if k.size == 0 {
		k.add(byte(h>>40), byte(h>>32))
	}
	k.add(byte(h >> 24))
}

// begin adds the parts of the beginnings of a word.
func (k *wordKey) begin(salt []byte, word string) {
	runes, part := 0, 0
	for at := range word {
		if part < len(beginnings) && runes == beginnings[part] {
			k.part(hash(salt, word[:at]))
			part++
		}
		runes++
	}
	if part < len(beginnings) && runes == beginnings[part] || part == 0 {
		k.part(hash(salt, word))
	}
}

// keyOf returns the key of a word.
func keyOf(salt []byte, word string) (k wordKey) {
	k.begin(salt, word)
	h := hash(salt, word)
	if k.size < longKey {
		k.add(byte(h >> 8))
	}
	k.add(byte(h))
	return k
}

// longKey is the size from which the parts of beginnings distinguish most words.
const longKey = 5

func (k *wordKey) slice() []byte { return k.bytes[:k.size] }

func (k wordKey) compare(other wordKey) int { return bytes.Compare(k.slice(), other.slice()) }

// keys are those from low to high.
type keys struct{ low, high wordKey }

// keysOf returns the keys of a word, or of all words that begin with it.
func keysOf(salt []byte, word string, prefix bool) keys {
	if !prefix || utf8.RuneCountInString(word) < beginnings[0] {
		k := keyOf(salt, word)
		return keys{k, k}
	}
	var r keys
	r.low.begin(salt, word)
	r.high = r.low
	for r.high.size < maxKey {
		r.high.add(0xff)
	}
	return r
}

func (r keys) has(k wordKey) bool { return k.compare(r.low) >= 0 && k.compare(r.high) <= 0 }
