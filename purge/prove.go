package purge

import (
	"context"
	"fmt"
	"os"
)

// prove records what a search after the removal finds: contents and rows as readers
// see them, and the raw bytes of the store's files, where removed data may be left.
func (s *Service) prove(ctx context.Context, after *Plan, res *Result) error {
	res.Scanned.Blobs = len(after.find.levels)
	stored := "it was stored again meanwhile; run the purge again"
	for id, l := range after.find.levels {
		if l == whole || after.find.exact[id] {
			res.Remains = append(res.Remains, Remain{Where: "blob " + id.String(), Count: 1, Why: stored})
		}
	}
	for _, c := range after.Conversations {
		res.Remains = append(res.Remains, Remain{Where: "conversation " + c.ID, Count: c.Places, Why: stored})
	}
	for _, key := range after.Rows {
		res.Remains = append(res.Remains, Remain{Where: "row " + key, Count: 1, Why: "its key or its value cannot be changed"})
	}
	for _, f := range after.Partly {
		res.Remains = append(res.Remains, Remain{
			Where: "file " + f.Path, Count: 1, Why: fmt.Sprintf("it holds the content as a part, in %d checkpoints; name the bytes as a secret to remove it, too", len(f.Checkpoints)),
		})
	}
	for _, err := range after.Unread {
		res.Remains = append(res.Remains, Remain{Where: "unreadable", Why: err.Error()})
	}
	if err := after.find.eachRow(ctx, func(rowAt) error { res.Scanned.Rows++; return nil }); err != nil {
		return err
	}
	return s.files(ctx, after, res)
}

// files searches the raw bytes of every file of the store and beside it.
func (s *Service) files(ctx context.Context, after *Plan, res *Result) error {
	for _, dir := range []string{s.stores.Dir, s.stores.Beside} {
		if dir == "" {
			continue
		}
		if err := eachFile(ctx, dir, func(path string) error { return s.file(ctx, path, after, res) }); err != nil {
			return err
		}
	}
	return nil
}

// file searches the raw bytes of a file.
func (s *Service) file(ctx context.Context, path string, after *Plan, res *Result) error {
	n, size, err := after.find.raw(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return res.left(ctx, "file "+path, err)
	}
	res.Scanned.Files++
	res.Scanned.Bytes += size
	if n > 0 {
		why := "left in the bytes of the file; run the purge again when no other process uses the store"
		if len(after.Partly) > 0 {
			why = "perhaps a part of the files above"
		}
		res.Remains = append(res.Remains, Remain{Where: path, Count: n, Why: why})
	}
	return nil
}

// raw counts occurrences in a file.
func (f *finder) raw(path string) (n int, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	before := 0 // of the part that the windows share
	err = windows(file, f.contents.longest, func(part []byte) bool {
		n += f.contents.count(part) - before
		before = f.contents.count(part[max(0, len(part)-max(f.contents.longest-1, 0)):])
		size += int64(len(part))
		return true
	})
	return max(n, 0), size, err
}
