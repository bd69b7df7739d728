package cursorexport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
)

// editorRows are the prefixes of the rows of a source that belong in an editor's
// store. Those of the SDK do not.
var editorRows = []string{
	cursor.MessagePrefix, cursor.CheckpointPrefix, cursor.CodeDiffPrefix, cursor.RequestPrefix,
	cursor.ContentPrefix, cursor.ConversationPrefix,
}

// source writes the rows that an import kept, and reports whether the conversation
// then has its own row. One that was not imported from an editor's store has none.
func (e *exporter) source(ctx context.Context, info conversation.Info) (listed bool, err error) {
	source, err := cursorimport.ReadSource(ctx, e.src, info.ID)
	if errors.Is(err, cursor.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, sourceLost(info.ID, err)
	}
	var own []byte
	for row, err := range source.Rows(ctx) {
		if err != nil {
			return false, sourceLost(info.ID, err)
		}
		if !slices.ContainsFunc(editorRows, func(p string) bool { return strings.HasPrefix(row.Key, p) }) {
			continue
		}
		if row.Key == cursor.ConversationPrefix+info.ID {
			if row.Value, err = e.continued(ctx, info, row.Value); err != nil {
				return false, err
			}
			own = row.Value
		}
		if strings.HasPrefix(row.Key, cursor.MessagePrefix) {
			e.result.Messages++
		}
		if err := e.row(ctx, row.Key, row.Value); err != nil {
			return false, err
		}
	}
	originals, err := source.Originals(ctx)
	if err != nil {
		return false, sourceLost(info.ID, err)
	}
	return own != nil, e.originals(ctx, info.ID, own, originals)
}

// originals writes the first contents of files that the conversation's row does not hold.
func (e *exporter) originals(ctx context.Context, id string, own []byte, originals map[string]jsoncheckpoint.Original) error {
	doc, err := cursor.ParseDocument(own)
	if err != nil {
		return nil // without a row, or with one that is not JSON, nothing names them
	}
	states := doc.Object("originalFileStates")
	for _, uri := range slices.Sorted(maps.Keys(originals)) {
		var inside *string
		if json.Unmarshal(states.Object(uri)["content"], &inside) == nil && inside != nil || originals[uri].NewlyCreated {
			continue
		}
		if err := e.row(ctx, cursor.OriginalPrefix+id+":"+uri, []byte(originals[uri].Content)); err != nil {
			return err
		}
	}
	return nil
}

// continued returns the row of an imported conversation. If the conversation was
// continued here, the row gets the current state instead of the imported one, and the
// messages of the turns since.
func (e *exporter) continued(ctx context.Context, info conversation.Info, own []byte) ([]byte, error) {
	doc, err := cursor.ParseDocument(own)
	if err != nil || info.Save == 0 {
		return own, nil // reading it reports the error
	}
	imported, err := e.importedRoot(ctx, info)
	if err != nil || imported == info.Root {
		return own, err
	}
	state, err := e.src.Blobs.Get(ctx, info.Root)
	if err != nil {
		return nil, lost(cursor.HeadPrefix+info.ID, info.Root, err)
	}
	if doc["conversationState"] != nil {
		doc["conversationState"] = encode(conversation.EncodeText(state))
	}
	doc["lastUpdatedAt"] = encode(info.Updated.UnixMilli())
	if err := e.further(ctx, info, doc, imported); err != nil {
		return nil, err
	}
	return encode(doc), nil
}

// importedRoot returns the root of the last save that an import made, zero if there is
// none.
func (e *exporter) importedRoot(ctx context.Context, info conversation.Info) (root blob.ID, err error) {
	for save, err := range e.store.History(ctx, info.ID, nil) {
		if err != nil {
			return blob.ID{}, err
		}
		if save.Kind == conversation.KindImport {
			root = save.Root
		}
	}
	return root, nil
}

// further adds the messages of turns that follow the imported ones. After a rewind,
// or if the imported state is no longer kept, the messages stay as they were
// imported.
func (e *exporter) further(ctx context.Context, info conversation.Info, doc cursor.Document, imported blob.ID) error {
	var order []json.RawMessage
	if json.Unmarshal(doc["fullConversationHeadersOnly"], &order) != nil || imported.IsZero() {
		return nil // an old row has its messages inside
	}
	before, err := e.reader.At(ctx, imported)
	if err != nil {
		return nil
	}
	now, err := e.reader.At(ctx, info.Root)
	if err != nil {
		return lost(cursor.HeadPrefix+info.ID, info.Root, err)
	}
	n := before.Turns()
	if n > now.Turns() || !slices.Equal(before.TurnIDs(), now.TurnIDs()[:n]) {
		return nil
	}
	added, err := e.messages(ctx, info.ID, now, n, nil)
	if err != nil {
		return err
	}
	for _, entry := range added {
		order = append(order, encode(entry))
	}
	doc["fullConversationHeadersOnly"] = encode(order)
	return nil
}

func sourceLost(id string, err error) error {
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) || errors.Is(err, cursor.ErrMalformed) {
		return &cursor.DataLossError{Source: "the imported rows of " + id, Err: err}
	}
	return fmt.Errorf("read the imported rows: %w", err)
}
