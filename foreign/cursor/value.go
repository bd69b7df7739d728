package cursor

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blob"
)

// Class is the SQLite storage class of a value. It is the format tag of the store:
// the same content means different things as text and as bytes.
type Class uint8

// Storage classes. Missing rows and NULL, which marks a deleted row, are the
// same.
const (
	ClassNull Class = iota
	ClassText
	ClassBlob
	ClassOther // a number; no release writes one
)

var classByName = map[string]Class{"null": ClassNull, "text": ClassText, "blob": ClassBlob, "integer": ClassOther, "real": ClassOther}

// String returns the name of the class.
func (c Class) String() string { return [...]string{"null", "text", "blob", "number"}[c] }

// Value is a stored value with its class. Keep the class when copying.
type Value struct {
	Class Class
	Data  []byte
}

// Absent reports whether there is no value: no row, or a tombstone.
func (v Value) Absent() bool { return v.Class == ClassNull }

// decodeBlob returns the content of a blob row. The id selects among the forms of
// different releases: bytes; hex as text; base64 as text; and one byte 00 for the
// empty blob, which the editor's store cannot hold. If none matches, it returns an
// error, never wrong bytes.
func decodeBlob(id blob.ID, v Value) ([]byte, error) {
	for _, candidate := range blobForms(v) {
		if blob.Sum(candidate) == id {
			return candidate, nil
		}
		if len(candidate) == 1 && candidate[0] == 0 && id == emptyID {
			return []byte{}, nil
		}
	}
	if v.Absent() {
		return nil, blob.NotFound(id)
	}
	return nil, fmt.Errorf("%w: %w", ErrDataLoss,
		blob.Corrupt(id, "%d bytes stored as %s match no known form of the content", len(v.Data), v.Class))
}

var emptyID = blob.Sum(nil)

func blobForms(v Value) [][]byte {
	switch v.Class {
	case ClassBlob:
		return [][]byte{v.Data}
	case ClassText:
		forms := [][]byte{}
		text := strings.TrimSpace(string(v.Data))
		if b, err := hex.DecodeString(text); err == nil {
			forms = append(forms, b)
		}
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			if b, err := enc.DecodeString(text); err == nil {
				forms = append(forms, b)
			}
		}
		return append(forms, v.Data)
	}
	return nil
}
