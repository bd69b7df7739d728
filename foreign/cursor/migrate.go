package cursor

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/stet-dev/stet/blob"
)

// MigrateV1 returns a conversation row as version 1 has it: the checkpoints that
// older rows keep inside are taken out, and their ids stand in their place, for
// the latest and for each message. The given row is not changed.
//
// The ids are made from the contents, so that reading a row twice gives the
// same ids. A row without checkpoints inside, of whatever version, is returned
// as it is.
func MigrateV1(doc Document) (Document, map[string]json.RawMessage) {
	taken := map[string]json.RawMessage{}
	out, changed := takeCheckpoint(doc, "latestCheckpoint", "latestCheckpointId", taken)
	items := doc.list("conversation")
	inItems := false
	for i, item := range items {
		m, err := parseDocument(item)
		if err != nil {
			continue
		}
		m, first := takeCheckpoint(m, "checkpoint", "checkpointId", taken)
		m, second := takeCheckpoint(m, "afterCheckpoint", "afterCheckpointId", taken)
		if first || second {
			items[i], inItems = encode(m), true
		}
	}
	if !changed && !inItems {
		return doc, nil
	}
	if inItems {
		out = out.clone()
		out["conversation"] = encode(items)
	}
	if out.integer("_v") < 1 {
		out["_v"] = json.RawMessage("1")
	}
	return out, taken
}

// encode encodes what was decoded from JSON a moment ago, which cannot fail.
func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("cursor: encode a decoded row: " + err.Error())
	}
	return data
}

// takeCheckpoint moves one checkpoint out of a row and reports whether there was
// one. An id that is already there wins over the one that would be made.
func takeCheckpoint(doc Document, field, idField string, taken map[string]json.RawMessage) (Document, bool) {
	if doc.document(field) == nil {
		return doc, false
	}
	out := doc.clone()
	delete(out, field)
	id := doc.text(idField)
	if id == "" {
		sum := blob.Sum(doc[field])
		id = "inline-" + hex.EncodeToString(sum[:16])
	}
	taken[id] = doc[field]
	out[idField] = encode(id)
	return out, true
}

// MigrateV11 returns a conversation row as version 11 has it: the state that the
// row holds moves into a blob, whose id is the conversation's pointer. The
// given row is not changed. The state is nil where the row holds none; a row
// whose state cannot be read is returned as it is, with the error.
func MigrateV11(doc Document) (Document, *State, error) {
	state, err := parseState(doc["conversationState"])
	if err != nil {
		return doc, nil, fmt.Errorf("migrate to version 11: %w",
			&DataLossError{Source: "conversationState", Err: err})
	}
	if state == nil || len(state.Data) == 0 {
		return doc, nil, nil
	}
	out := doc.clone()
	delete(out, "conversationState")
	if out.integer("_v") < 11 {
		out["_v"] = json.RawMessage("11")
	}
	return out, state, nil
}
