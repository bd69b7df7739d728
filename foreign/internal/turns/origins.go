package turns

import (
	"context"
	"slices"

	"github.com/stet-dev/stet/foreign/internal/jsonl"
)

// Origins returns the sessions from which lines of a record were copied, in the order in
// which they come. The function returns the one of a line, "" for none, and whether to go on.
func Origins(ctx context.Context, path string, of func(line []byte) (id string, more bool)) (ids []string) {
	for line, err := range jsonl.Lines(ctx, path, 0) {
		if err != nil {
			continue
		}
		id, more := of(line.Data)
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		if !more {
			break
		}
	}
	return ids
}
