package cursor

import (
	"encoding/hex"
	"encoding/json"

	"github.com/stet-dev/stet/blob"
)

// InlineCheckpoint begins the ids of checkpoints that MigrateV1 found inside a row.
const InlineCheckpoint = "inline-"

// MigrateV1 returns a conversation row in the form of version 1: checkpoints inside
// older rows are replaced by their ids, for the latest and for each message. It does
// not change the given row.
//
// The ids are derived from the contents, so reading a row twice gives the same ids. A
// row without inline checkpoints, of any version, is returned unchanged.
func MigrateV1(doc Document) (Document, map[string]json.RawMessage) {
	taken := map[string]json.RawMessage{}
	out, changed := takeCheckpoint(doc, "latestCheckpoint", "latestCheckpointId", taken)
	items := doc.list("conversation")
	inItems := false
	for i, item := range items {
		m, err := ParseDocument(item)
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
	if out.Integer("_v") < 1 {
		out["_v"] = json.RawMessage("1")
	}
	return out, taken
}

// encode encodes a value that was decoded from JSON, which cannot fail.
func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("cursor: encode a decoded row: " + err.Error())
	}
	return data
}

// takeCheckpoint moves one checkpoint out of a row and reports whether there was one.
// An existing id takes precedence over a derived one.
func takeCheckpoint(doc Document, field, idField string, taken map[string]json.RawMessage) (Document, bool) {
	if doc.Object(field) == nil {
		return doc, false
	}
	out := doc.clone()
	delete(out, field)
	id := doc.Text(idField)
	if id == "" {
		sum := blob.Sum(doc[field])
		id = InlineCheckpoint + hex.EncodeToString(sum[:16])
	}
	taken[id] = doc[field]
	out[idField] = encode(id)
	return out, true
}
