package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/blob"
)

// prefix is the prefix of the tenant's objects. The name of the tenant is hashed,
// because bucket keys allow fewer characters and are visible to more people.
func (t *Tenant) prefix() string {
	sum := sha256.Sum256([]byte(t.name))
	return hex.EncodeToString(sum[:16]) + "/"
}

// newObjectKey returns a key that was never used: a late removal under an old key
// cannot hit a new object with the same content.
func (t *Tenant) newObjectKey(id blob.ID) string {
	var salt [8]byte
	rand.Read(salt[:])
	name := id.String()
	return t.prefix() + name[:2] + "/" + name + "." + hex.EncodeToString(salt[:])
}

// putObject writes a large blob's object in the caller's goroutine and queues its
// row.
func (b *Blobs) putObject(ctx context.Context, id, base blob.ID, r io.Reader, size int64) error {
	held, err := b.renew(ctx, id)
	if err != nil {
		return err
	}
	if held { // still an error if the source does not match
		return checkSize(r, size)
	}
	objects, key := b.t.db.opts.Objects, b.t.newObjectKey(id)
	if err := objects.PutObject(ctx, key, r, size); err != nil {
		return fmt.Errorf("store blob %s: %w", id, err)
	}
	rec := &record{id: id, base: base, size: size, object: key}
	if err := b.t.put(ctx, rec); err != nil || b.t.find(id) == rec {
		return err
	}
	return b.discardUnused(ctx, rec)
}

// discardUnused removes the object of a record that is no longer pending, if another
// call was faster and the object is not needed. It checks only the database: a record
// in memory may have a third object, while the row names this one.
func (b *Blobs) discardUnused(ctx context.Context, rec *record) error {
	db := b.t.db
	var object *string
	err := db.read(ctx, func() error {
		return db.pool.QueryRow(ctx, db.sql(`SELECT object FROM @blobs WHERE tenant = $1 AND id = $2`), b.t.name, rec.id[:]).Scan(&object)
	})
	if err == nil && object != nil && *object == rec.object {
		return nil
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return db.wrap(ctx, "look for the row of an object", err)
	}
	if err := db.opts.Objects.RemoveObjects(ctx, rec.object); err != nil {
		return fmt.Errorf("remove an unneeded object: %w", err)
	}
	return nil
}

// renew moves a stored blob to the current generation at once, and reports whether it
// exists. Unlike small blobs, a large one cannot be stored again from memory if a
// collector is faster.
func (b *Blobs) renew(ctx context.Context, id blob.ID) (bool, error) {
	if b.t.find(id) != nil {
		return true, nil
	}
	if has, err := b.Has(ctx, id); err != nil || !has[0] {
		return false, err
	}
	err := b.t.do(&request{ctx: ctx, batch: refBatch(id)})
	if errors.Is(err, blob.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func checkSize(r io.Reader, size int64) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("%w: source has %d bytes or more, want %d", blob.ErrMismatch, n, size)
	}
	return err
}

// finder looks up where a blob is.
type finder func(context.Context, blob.ID) (place, error)

// load returns where a blob is, with its content. Content, size and base are of one
// place, even if the blob is replaced meanwhile.
func (b *Blobs) load(ctx context.Context, id blob.ID, find finder) (place, error) {
	p, err := find(ctx, id)
	for err == nil && p.object != "" {
		if p.data, err = b.readObject(ctx, id, p); err == nil {
			return p, nil
		}
		p, err = b.moved(ctx, id, p, err, find)
	}
	if err != nil {
		return place{}, err
	}
	return p, nil
}

// moved returns where a blob is whose object could not be read because of missing. If
// the object is gone, a collector has removed the blob, or it was replaced: then it has
// another place. Without that it is damaged.
func (b *Blobs) moved(ctx context.Context, id blob.ID, was place, missing error, find finder) (place, error) {
	if !errors.Is(missing, blob.ErrNotFound) {
		return place{}, missing
	}
	p, err := find(ctx, id)
	if err == nil && p.object == was.object {
		err = blob.Corrupt(id, "its object is missing")
	}
	return p, err
}

// openObject opens the object of a place. The error wraps blob.ErrNotFound if there is
// none.
func (b *Blobs) openObject(ctx context.Context, id blob.ID, p place) (io.ReadCloser, error) {
	if b.t.db.opts.Objects == nil {
		return nil, noBucket(id)
	}
	r, err := b.t.db.opts.Objects.OpenObject(ctx, p.object, 0, p.size)
	if errors.Is(err, blob.ErrCorrupt) {
		return nil, blob.Corrupt(id, "its object is shorter than %d bytes", p.size)
	}
	if err != nil {
		return nil, fmt.Errorf("open the object of %s: %w", id, err)
	}
	return r, nil
}

// readObject reads the object of a place, like openObject.
func (b *Blobs) readObject(ctx context.Context, id blob.ID, p place) (data []byte, err error) {
	if err := blob.Reserve(ctx, p.size); err != nil {
		return nil, err
	}
	r, err := b.openObject(ctx, id, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data = make([]byte, p.size)
	if n, err := io.ReadFull(r, data); err != nil {
		return nil, readError(ctx, id, int64(n), p.size, err)
	}
	return data, nil
}

func noBucket(id blob.ID) error {
	return fmt.Errorf("read blob %s: it is in a bucket, but none is configured", id)
}

// orphanPage is how many objects are compared with rows at a time.
const orphanPage = 500

// SweepOrphans removes objects of the tenant that are older than grace and that no
// row names: leftovers of a crash between object and row. It returns their number.
// Grace must be longer than any Put takes; an hour is enough.
func (b *Blobs) SweepOrphans(ctx context.Context, grace time.Duration) (removed int, err error) {
	objects := b.t.db.opts.Objects
	if objects == nil {
		return 0, ctx.Err()
	}
	youngest := time.Now().Add(-grace)
	page := make([]string, 0, orphanPage)
	sweep := func() error {
		n, err := b.removeOrphans(ctx, page)
		removed, page = removed+n, page[:0]
		return err
	}
	err = objects.ListObjects(ctx, b.t.prefix(), "", func(o blob.ObjectInfo) error {
		if o.Time.After(youngest) {
			return ctx.Err()
		}
		if page = append(page, o.Key); len(page) < orphanPage {
			return nil
		}
		return sweep()
	})
	if err == nil {
		err = sweep()
	}
	if err != nil {
		return removed, fmt.Errorf("sweep orphans: %w", err)
	}
	return removed, nil
}

// removeOrphans removes the objects that no row names. It reads rows after the
// objects were listed: a later row belongs to a younger object.
func (b *Blobs) removeOrphans(ctx context.Context, keys []string) (int, error) {
	if len(keys) == 0 {
		return 0, nil
	}
	ids := make([][]byte, 0, len(keys))
	for _, key := range keys {
		if id, ok := objectID(key); ok {
			ids = append(ids, id.Bytes())
		}
	}
	db, named := b.t.db, make(map[string]bool)
	rows, err := db.pool.Query(ctx, db.sql(`SELECT object FROM @blobs WHERE tenant = $1 AND id = ANY($2) AND object IS NOT NULL`), b.t.name, ids)
	if err == nil {
		var object string
		_, err = pgx.ForEachRow(rows, []any{&object}, func() error {
			named[object] = true
			return nil
		})
	}
	if err != nil {
		return 0, db.wrap(ctx, "look for the rows of objects", err)
	}
	var orphans []string
	for _, key := range keys {
		id, ok := objectID(key)
		if !ok || named[key] { // foreign objects stay
			continue
		}
		if r := b.t.find(id); r != nil && r.object == key {
			continue
		}
		orphans = append(orphans, key)
	}
	if len(orphans) == 0 {
		return 0, nil
	}
	return len(orphans), db.opts.Objects.RemoveObjects(ctx, orphans...)
}

// objectID returns the blob that an object's key names.
func objectID(key string) (blob.ID, bool) {
	name, _, found := strings.Cut(key[strings.LastIndexByte(key, '/')+1:], ".")
	if !found {
		return blob.ID{}, false
	}
	id, err := blob.ParseID(name)
	return id, err == nil
}
