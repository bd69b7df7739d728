package s3blob

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blob"
)

// maxKey is what S3 allows, with the prefix.
const maxKey = 1024

// checkKey rejects keys that some services cannot hold: services that keep objects in
// files accept no empty segments, dots, or characters that need escaping.
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

// path returns the key in the bucket.
func (b *Bucket) path(key string) (string, error) {
	path := b.addr.prefix + key
	// Check the key alone first: with a prefix, even an empty key would pass.
	return path, errors.Join(checkKey(key), checkKey(path))
}

// escape converts any text to a unique key segment: letters, digits and hyphens stay,
// every other byte becomes a dot and two hexadecimal digits.
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
