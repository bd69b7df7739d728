package blame

import (
	"context"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/linediff"
)

// texts reads the contents of versions. A caller that needs one soon needs the next ones, so they
// are read together: read one by one, each is a transaction of its own.
type texts struct {
	r        *Reader
	versions []checkpoint.Version
	read     map[int][]byte // not requested yet
}

const (
	aheadTexts = 64
	aheadBytes = 4 << 20
)

// at returns the lines of a version.
func (t *texts) at(ctx context.Context, version int) ([]byte, error) {
	text, ok := t.read[version]
	if !ok {
		if err := t.ahead(ctx, version); err != nil {
			return nil, err
		}
		text, ok = t.read[version]
	}
	delete(t.read, version)
	if !ok {
		return t.r.content(ctx, t.versions[version].Entry)
	}
	if linediff.Binary(text) {
		return nil, nil
	}
	return text, nil
}

// ahead reads a version and those after it. Errors are left to the call that needs the version,
// which may never come.
func (t *texts) ahead(ctx context.Context, version int) error {
	t.read = make(map[int][]byte)
	return blob.ReadMany(ctx, t.r.blobs, func(from blob.Reader) error {
		left := int64(aheadBytes)
		for i := version; i < len(t.versions) && i < version+t.r.ahead; i++ {
			e := t.versions[i].Entry
			if !hasLines(e) || e.Chunked {
				continue
			}
			if left -= e.Size; left < 0 && i > version {
				break
			}
			data, err := from.Get(ctx, e.ID)
			if err == nil && int64(len(data)) == e.Size {
				t.read[i] = data
			}
		}
		return ctx.Err()
	})
}
