package cursorimport

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/foreign/cursor"
)

// digestVersion changes when an import converts the same rows differently, so that a
// newer release imports them again.
const digestVersion = "2"

// conversationPrefixes are the prefixes that a conversation id follows.
var conversationPrefixes = []string{
	cursor.MessagePrefix, cursor.MessageHeadPrefix, cursor.CheckpointPrefix, cursor.OriginalPrefix, cursor.CodeDiffPrefix, cursor.RequestPrefix,
}

// digest is a hash of everything that the source has of a conversation, or "" if it
// cannot be read completely.
func (im *importer) digest(ctx context.Context, conv *cursor.Conversation) (string, error) {
	d := rowDigest{sha256.New()}
	d.add("version", []byte(digestVersion))
	d.add("row", conv.Raw)
	d.add("header", encode(conv.Header))
	for _, state := range append([]*cursor.State{conv.State}, conv.Alternates...) {
		if state != nil {
			d.add("state", state.ID.Bytes())
		}
	}
	err := im.addRows(ctx, conv, d)
	if err != nil {
		if fatal(ctx, err) {
			return "", err
		}
		return "", nil
	}
	return hex.EncodeToString(d.Sum(nil)), nil
}

func (im *importer) addRows(ctx context.Context, conv *cursor.Conversation, d rowDigest) error {
	switch im.src.Kind() {
	case cursor.KindSDK, cursor.KindLines:
		return im.addRuns(ctx, conv, d)
	case cursor.KindAgent:
		return nil
	}
	for _, prefix := range conversationPrefixes {
		for row, err := range im.src.Rows(ctx, prefix+conv.ID+":") {
			if err != nil {
				return err
			}
			d.add(row.Key, row.Value.Data)
		}
	}
	return nil
}

func (im *importer) addRuns(ctx context.Context, conv *cursor.Conversation, d rowDigest) error {
	for run, err := range im.src.Runs(ctx, conv.ID) {
		if err != nil {
			return err
		}
		d.add("run", encode(run))
		for event, err := range im.src.Events(ctx, run.ID, 0) {
			if err != nil {
				return err
			}
			d.add("event", encodeEvent(event))
		}
	}
	return nil
}

// rowDigest hashes rows so that no two lists of rows give the same bytes.
type rowDigest struct{ hash.Hash }

func (d rowDigest) add(key string, value []byte) {
	sum := blob.Sum(value)
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(key)))
	d.Write(size[:])
	d.Write([]byte(key))
	d.Write(sum[:])
}
