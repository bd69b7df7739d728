package cursorimport

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/foreign/cursor"
)

// carrier copies the blobs of one conversation. It remembers what it copied, because
// the states of a conversation share most of their parts.
type carrier struct {
	im   *importer
	done map[blobAs]struct{}
}

// blobAs is a blob with its kind, which determines its references.
type blobAs struct {
	id   blob.ID
	kind graph.Kind
}

func (im *importer) carrier() *carrier { return &carrier{im, map[blobAs]struct{}{}} }

// bring copies a root and everything reachable from it, and returns the ids. data is
// given if the source has no blob of the root. It copies nothing unless everything is
// present.
func (c *carrier) bring(ctx context.Context, kind graph.Kind, root blob.ID, data []byte) ([]blob.ID, error) {
	from := &withRoot{Store: c.im.blobs, id: root, data: data}
	if kind == graph.State {
		if err := c.checkRoot(ctx, from, root); err != nil {
			return nil, err
		}
	}
	var reached []blobAs
	opts := &graph.Options{Skip: func(_ blob.ID, r graph.Ref) bool {
		_, done := c.done[blobAs{r.ID, r.Kind}] // not written during a walk
		return done
	}}
	err := graph.Walk(ctx, from, graph.Roots(graph.Root{Kind: kind, ID: root}), opts, func(n graph.Node) error {
		if n.Err != nil {
			return fmt.Errorf("%s %s: %w", n.Kind, n.ID.Short(), n.Err)
		}
		reached = append(reached, blobAs{n.ID, n.Kind})
		return nil
	})
	if err != nil {
		return nil, err
	}
	ids := make([]blob.ID, len(reached))
	for i, r := range reached {
		ids[i] = r.id
	}
	if err := c.im.copy(ctx, from, ids); err != nil {
		return nil, err
	}
	for _, r := range reached {
		c.done[r] = struct{}{}
	}
	return ids, nil
}

// checkRoot rejects a state that our readers would reject.
func (c *carrier) checkRoot(ctx context.Context, from blob.Store, root blob.ID) error {
	data, err := from.Get(ctx, root)
	if err != nil {
		return err
	}
	_, err = (&cursor.State{ID: root, Data: data}).Decode()
	return err
}

// withRoot is a store with one additional blob.
type withRoot struct {
	blob.Store
	id   blob.ID
	data []byte // nil if the store has it
}

// Get returns the content of a blob.
func (s *withRoot) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if s.data != nil && id == s.id {
		return append([]byte{}, s.data...), ctx.Err()
	}
	return s.Store.Get(ctx, id)
}

// Sizes of one request and one put.
const (
	hasBatch = 256
	putBatch = 4 << 20
)

// copy copies the blobs that the target lacks, a few at a time. It reads all of them
// before it stores the first, so that a damaged one leaves nothing behind.
func (im *importer) copy(ctx context.Context, from blob.Store, ids []blob.ID) error {
	lacking, err := im.lacking(ctx, ids)
	if err != nil || len(lacking) == 0 {
		return err
	}
	var last []blob.Blob
	batches := 0
	err = inBatches(ctx, from, lacking, func(batch []blob.Blob) error {
		last, batches = batch, batches+1
		return nil
	})
	if err != nil {
		return err
	}
	if batches == 1 { // the usual case: nothing has to be read again
		return im.put(ctx, last)
	}
	return inBatches(ctx, from, lacking, func(batch []blob.Blob) error { return im.put(ctx, batch) })
}

// inBatches reads blobs and passes them to fn, some megabytes at a time.
func inBatches(ctx context.Context, from blob.Store, ids []blob.ID, fn func([]blob.Blob) error) error {
	var batch []blob.Blob
	size := 0
	for i, id := range ids {
		data, err := from.Get(ctx, id)
		if err != nil {
			return err
		}
		batch, size = append(batch, blob.Blob{ID: id, Data: data}), size+len(data)
		if size < putBatch && i < len(ids)-1 {
			continue
		}
		if err := fn(batch); err != nil {
			return err
		}
		batch, size = nil, 0
	}
	return nil
}

// lacking returns the ids, each once, that the target does not have.
func (im *importer) lacking(ctx context.Context, ids []blob.ID) ([]blob.ID, error) {
	var out []blob.ID
	seen := make(map[blob.ID]struct{}, len(ids))
	for start := 0; start < len(ids); start += hasBatch {
		batch := ids[start:min(start+hasBatch, len(ids))]
		have, err := im.dst.Blobs.Has(ctx, batch...)
		if err != nil {
			return nil, target(err)
		}
		for i, id := range batch {
			_, twice := seen[id]
			_, counted := im.counted[id]
			if !have[i] && !twice && !counted {
				seen[id] = struct{}{}
				out = append(out, id)
			}
		}
	}
	return out, nil
}

// put stores blobs that the target lacks and counts them.
func (im *importer) put(ctx context.Context, blobs []blob.Blob) error {
	if im.opts.DryRun {
		if im.counted == nil {
			im.counted = map[blob.ID]struct{}{}
		}
		for _, b := range blobs {
			im.counted[b.ID] = struct{}{}
		}
	} else if err := im.dst.Blobs.Put(ctx, blobs...); err != nil {
		return target(err)
	}
	for _, b := range blobs {
		im.result.Blobs++
		im.result.Bytes += int64(len(b.Data))
	}
	im.progress(im.current)
	return nil
}

// putNew stores blobs that we created, if the target lacks them.
func (im *importer) putNew(ctx context.Context, blobs ...blob.Blob) error {
	ids := make([]blob.ID, len(blobs))
	byID := make(map[blob.ID]blob.Blob, len(blobs))
	for i, b := range blobs {
		ids[i], byID[b.ID] = b.ID, b
	}
	lacking, err := im.lacking(ctx, ids)
	if err != nil || len(lacking) == 0 {
		return err
	}
	fresh := make([]blob.Blob, len(lacking))
	for i, id := range lacking {
		fresh[i] = byID[id]
	}
	return im.put(ctx, fresh)
}
