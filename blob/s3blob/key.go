package s3blob

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blob"
)

// maxKey is what S3 allows, with the prefix.
const maxKey = 1024

// checkKey refuses keys that some service could not hold: those that keep objects
// in files do not take empty segments, dots, or anything that needs escaping.
func checkKey(key string) error {
	if len(key) > maxKey {
		return fmt.Errorf("%w: key of an object has %d bytes, more than %d", blob.ErrInvalidID, len(key), maxKey)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf("%w: key of an object has the segment %q", blob.ErrInvalidID, segment)
		}
	}
	for i := range len(key) {
		if c := key[i]; !alphanumeric(c) && !strings.ContainsRune("._/-", rune(c)) {
			return fmt.Errorf("%w: key of an object has the byte %#x", blob.ErrInvalidID, c)
		}
	}
	return nil
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// path returns the key that the bucket knows.
func (b *Bucket) path(key string) (string, error) {
	path := b.addr.prefix + key
	// The key by itself first: behind a prefix also the empty one would do.
	return path, errors.Join(checkKey(key), checkKey(path))
}

// escape makes a segment of a key out of any text, injectively: letters, digits
// and hyphens stay, every other byte becomes a dot and two hexadecimal digits.
func escape(text string) string {
	var out strings.Builder
	for i := range len(text) {
		if c := text[i]; alphanumeric(c) || c == '-' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, ".%02x", c)
		}
	}
	return out.String()
}
