package cursor

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/stet-dev/stet/blob"
)

// Prefixes of the keys in the editor's table, for Keys, Rows and Value. What follows
// is named beside each. Identifiers are joined with ':' unescaped; those that
// releases create contain none.
const (
	BlobPrefix         = "agentKv:blob:"             // blob id
	HeadPrefix         = "agentKv:checkpoint:"       // conversation
	MessageHeadPrefix  = "agentKv:bubbleCheckpoint:" // conversation:message
	CheckpointPrefix   = "checkpointId:"             // conversation:checkpoint
	ConversationPrefix = "composerData:"             // conversation
	MessagePrefix      = "bubbleId:"                 // conversation:message
	OriginalPrefix     = "ofsContent:"               // conversation:URI
	ContentPrefix      = "composer.content."         // SHA-256 of the text of a file
	CodeDiffPrefix     = "codeBlockDiff:"            // conversation:diff
	RequestPrefix      = "messageRequestContext:"    // conversation:message
	// CloudAgentSuffix follows the id of a cloud agent.
	CloudAgentSuffix = ":cloudAgent:metadata"
)

// families are the prefixes that Measure reports separately, in key order.
var families = []string{
	BlobPrefix, MessageHeadPrefix, HeadPrefix, MessagePrefix, CheckpointPrefix,
	CodeDiffPrefix, ContentPrefix, ConversationPrefix, "composerVirtualRowHeights:",
	RequestPrefix, OriginalPrefix,
}

// family returns the family of a key: its prefix without the separator, or the part
// before the first separator.
func family(key string) string {
	for _, p := range families {
		if strings.HasPrefix(key, p) {
			return p[:len(p)-1]
		}
	}
	if strings.HasSuffix(key, CloudAgentSuffix) {
		return CloudAgentSuffix[1:]
	}
	if i := strings.IndexByte(key, ':'); i > 0 {
		return key[:i]
	}
	return "other"
}

// gaps returns the ranges between the families, which hold keys recognized only by
// their suffix.
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

// Keys yields the keys of an editor's store with a prefix, in order, from the index
// alone: it reads no values, so tombstones are included. An empty prefix yields all
// keys.
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

// Row is a row of the editor's table.
type Row struct {
	Key   string
	Value Value
}

// Rows yields the rows of an editor's store whose keys have a prefix, in order of
// their keys. It skips tombstones. Like all scans it reads in short transactions:
// rows that change meanwhile may be seen in either version. An error ends the
// sequence.
func (s *Store) Rows(ctx context.Context, prefix string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for row, err := range s.scan(ctx, prefixRange(prefix), scanRows) {
			if err != nil {
				yield(Row{}, err)
				return
			}
			if !row.value.Absent() && !yield(Row{row.key, row.value}, nil) {
				return
			}
		}
	}
}

// Value returns the value of a key of an editor's store. For a missing or deleted key
// the error wraps ErrNotFound.
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

// scan scans the editor's table; a missing table is empty.
func (s *Store) scan(ctx context.Context, r keyRange, kind scanKind) iter.Seq2[row, error] {
	if !s.tables[diskTable.name] {
		return func(func(row, error) bool) {}
	}
	return s.main.scan(ctx, diskTable, r, kind)
}

// parsePointer reads the id in a pointer row: hex text, in any case and with
// surrounding white space. Bytes are also accepted, as text or raw.
func parsePointer(v Value) (blob.ID, error) {
	if v.Class == ClassBlob && len(v.Data) == blob.IDSize {
		return blob.IDFromBytes(v.Data)
	}
	return blob.ParseID(string(v.Data))
}
