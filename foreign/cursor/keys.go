package cursor

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/stet-dev/stet/blob"
)

// Prefixes of the keys in the editor's table. Identifiers are joined with ':'
// as they are; those that releases make contain none.
const (
	blobPrefix        = "agentKv:blob:"
	headPrefix        = "agentKv:checkpoint:"
	messageHeadPrefix = "agentKv:bubbleCheckpoint:"
	checkpointPrefix  = "checkpointId:"
	dataPrefix        = "composerData:"
	messagePrefix     = "bubbleId:"
	originalPrefix    = "ofsContent:"
	contentPrefix     = "composer.content."
	codeDiffPrefix    = "codeBlockDiff:"
	requestPrefix     = "messageRequestContext:"
	cloudSuffix       = ":cloudAgent:metadata"
)

// families are the prefixes that Measure tells apart, in key order.
var families = []string{
	blobPrefix, messageHeadPrefix, headPrefix, messagePrefix, checkpointPrefix,
	codeDiffPrefix, contentPrefix, dataPrefix, "composerVirtualRowHeights:",
	requestPrefix, originalPrefix,
}

// family returns the name of the family that a key belongs to: its prefix
// without the separator, or what stands before the first separator.
func family(key string) string {
	for _, p := range families {
		if strings.HasPrefix(key, p) {
			return p[:len(p)-1]
		}
	}
	if strings.HasSuffix(key, cloudSuffix) {
		return cloudSuffix[1:]
	}
	if i := strings.IndexByte(key, ':'); i > 0 {
		return key[:i]
	}
	return "other"
}

// gaps returns the ranges between the families, where keys lie that are known
// by their end only.
func gaps() []keyRange {
	var out []keyRange
	start := ""
	for _, p := range families {
		r := prefixRange(p)
		out = append(out, keyRange{start, r.start})
		start = r.end
	}
	return append(out, keyRange{start, ""})
}

// Keys gives the keys of an editor's store that begin with prefix, in order,
// from the index alone: no value is read, so that deleted rows whose key is
// kept are among them. An empty prefix gives all keys.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	r := keyRange{}
	if prefix != "" {
		r = prefixRange(prefix)
	}
	return func(yield func(string, error) bool) {
		for row, err := range s.scan(ctx, r, scanKeys) {
			if !yield(row.key, err) || err != nil {
				return
			}
		}
	}
}

// Value returns the value of a key of an editor's store. A key that is missing
// or marked as deleted gives an error that wraps ErrNotFound.
func (s *Store) Value(ctx context.Context, key string) (Value, error) {
	v, err := s.value(ctx, key)
	if err == nil && v.Absent() {
		err = fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	return v, err
}

// value is Value with an absent value instead of ErrNotFound.
func (s *Store) value(ctx context.Context, key string) (Value, error) {
	if !s.tables[diskTable.name] {
		return Value{}, ctx.Err()
	}
	return s.main.get(ctx, diskTable, key)
}

// scan is a scan of the editor's table, which is empty where there is none.
func (s *Store) scan(ctx context.Context, r keyRange, kind scanKind) iter.Seq2[row, error] {
	if !s.tables[diskTable.name] {
		return func(func(row, error) bool) {}
	}
	return s.main.scan(ctx, diskTable, r, kind)
}

// parsePointer reads the id that a pointer row holds: hex text, in any case
// and with white space around it. Bytes are taken too, as text or raw.
func parsePointer(v Value) (blob.ID, error) {
	if v.Class == ClassBlob && len(v.Data) == blob.IDSize {
		return blob.IDFromBytes(v.Data)
	}
	return blob.ParseID(string(v.Data))
}
