package mirror

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// promoted is the value of the row of a blob that was put with LocalOnly first and
// without it later: it is sent by its row, since it arrived long ago.
const promoted = "send"

// noteLocal writes a row for each blob that must not be sent, before the blob is stored:
// a process that goes through the arrivals then skips it.
func (s *Store) noteLocal(ctx context.Context, blobs []blob.Blob) error {
	b := &kv.Batch{}
	for i := range blobs {
		if blobs[i].LocalOnly {
			b.Set = append(b.Set, kv.Set{Key: s.localKey(blobs[i].ID)})
		}
	}
	if len(b.Set) < len(blobs) {
		if err := s.promote(ctx, blobs, b); err != nil {
			return err
		}
	}
	if len(b.Set) == 0 {
		return nil
	}
	if err := s.rows.Commit(ctx, b); err != nil {
		return fmt.Errorf("note what stays local: %w", err)
	}
	return nil
}

// promote changes the rows of blobs that may be sent from now on.
func (s *Store) promote(ctx context.Context, blobs []blob.Blob, b *kv.Batch) error {
	local, err := s.localOnly(ctx)
	if err != nil || len(local) == 0 {
		return err
	}
	for i := range blobs {
		key := s.localKey(blobs[i].ID)
		if value, ok := local[key]; ok && value == "" && !blobs[i].LocalOnly {
			b.Set = append(b.Set, kv.Set{Key: key, Value: []byte(promoted + " " + blobs[i].ID.String())})
		}
	}
	return nil
}

func (s *Store) localKey(id blob.ID) string { return keyspace.LocalOnly(s.opts.Names(id).String()) }

// localOnly returns the rows of blobs that were put with LocalOnly. There are few.
func (s *Store) localOnly(ctx context.Context) (map[string]string, error) {
	local := make(map[string]string)
	for row, err := range s.rows.Scan(ctx, keyspace.AllLocalOnly(), kv.ScanOptions{}) {
		if err != nil {
			return nil, fmt.Errorf("read what stays local: %w", err)
		}
		local[row.Key] = string(row.Value)
	}
	return local, nil
}

// sendable returns the ids of arrived blobs that may be sent. The rows are read after
// the arrivals, so that the row of every one of them is seen.
func (s *Store) sendable(ctx context.Context, infos []blob.Info) ([]blob.ID, error) {
	local, err := s.localOnly(ctx)
	if err != nil {
		return nil, err
	}
	var ids []blob.ID
	for _, info := range infos {
		if value, ok := local[s.localKey(info.ID)]; !ok || value != "" {
			ids = append(ids, info.ID)
		}
	}
	return ids, nil
}

// sendPromoted sends the blobs that stayed local until they were put without the flag,
// and removes their rows.
func (s *Store) sendPromoted(ctx context.Context, origin string, sent *Sent) error {
	local, err := s.localOnly(ctx)
	if err != nil {
		return err
	}
	b := &kv.Batch{}
	var ids []blob.ID
	for key, value := range local {
		var hex string
		if n, _ := fmt.Sscanf(value, promoted+" %s", &hex); n == 0 {
			continue
		}
		id, err := blob.ParseID(hex)
		if err != nil {
			return fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, key, err)
		}
		ids = append(ids, id)
		b.Delete = append(b.Delete, key)
	}
	if len(ids) == 0 {
		return nil
	}
	if err := s.sendPage(ctx, origin, ids, sent); err != nil {
		return err
	}
	return s.rows.Commit(ctx, b)
}
