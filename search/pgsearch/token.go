package pgsearch

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord limits a word in bytes; longer ones are cut, in texts and in queries. The
// database accepts words of up to 2,046 bytes.
const maxWord = 1000

// token is a word in normalized form, and its bytes in a text.
type token struct {
	word       string
	start, end int
}

// tokens splits a text into words: letters, numbers and private-use characters, with
// their marks. Case and diacritics are ignored.
func tokens(text string) iter.Seq[token] {
	return func(yield func(token) bool) {
		for at := 0; at < len(text); {
			r, size := utf8.DecodeRuneInString(text[at:])
			if !begins(r) {
				at += size
				continue
			}
			end, ascii := at+size, r < utf8.RuneSelf
			for end < len(text) {
				r, size := utf8.DecodeRuneInString(text[end:])
				if !begins(r) && !unicode.Is(unicode.M, r) {
					break
				}
				end, ascii = end+size, ascii && r < utf8.RuneSelf
			}
			if !yield(token{fold(text[at:end], ascii), at, end}) {
				return
			}
			at = end
		}
	}
}

// begins reports whether a character can begin a word.
func begins(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r))
}

func fold(word string, ascii bool) string {
	if len(word) > maxWord {
		word = strings.ToValidUTF8(word[:maxWord], "")
	}
	word = strings.ToLower(word)
	if ascii {
		return word
	}
	return strings.Map(plain, word)
}

// plain returns a Latin letter without its diacritics, and -1 for standalone
// diacritics. In other scripts they distinguish letters.
func plain(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		return r
	case 0x300 <= r && r <= 0x36f:
		return -1
	}
	var buf [utf8.UTFMax]byte
	parts := norm.NFD.Properties(utf8.AppendRune(buf[:0], r)).Decomposition()
	if len(parts) > 1 && 'a' <= parts[0] && parts[0] <= 'z' {
		return rune(parts[0])
	}
	return r
}
