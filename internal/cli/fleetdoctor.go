package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest/contract"
	"github.com/stet-dev/stet/fleet"
)

// maxSkew is the largest clock difference between a node and its backends. The data
// does not depend on clocks; signatures for the bucket fail at 15 minutes, and ages
// (of removable blobs, of idle conversations) are wrong by the difference.
const maxSkew = time.Minute

// backends examines a store in a database and a bucket.
func (d *doctor) backends(ctx context.Context, quick bool) error {
	d.workspace()
	f, err := d.app.openFleet(ctx, stet.Options{})
	d.report("database and bucket answer", d.where(), err)
	if err != nil {
		return ctx.Err()
	}
	err = d.inspect(ctx, f)
	if err == nil && f.Bucket() != nil {
		err = d.bucket(ctx, f, quick)
	}
	if err == nil && !quick {
		err = d.scratchTenant(ctx, f)
	}
	return errors.Join(err, f.Close())
}

func (d *doctor) where() string {
	if d.app.bucket == "" {
		return d.dir + "; no bucket, so conversations cannot be archived and large contents are in the database"
	}
	return d.dir + ", " + d.app.bucket
}

// inspect looks at the database and the tenant's store.
func (d *doctor) inspect(ctx context.Context, f *fleet.Fleet) error {
	report, err := f.Inspect(ctx)
	d.report("database", fmt.Sprintf("server %s, format %s, %d logical shards, epoch %d, %s", report.Server, report.Format, fleet.Shards, report.Epoch,
		plural(int64(report.Tenants), "tenant")), err)
	if err != nil {
		return ctx.Err()
	}
	d.report("database takes writes", "", f.Postgres().Ping(ctx))
	d.report("clock of the database", "", skewed(report.Skew, report.RoundTrip))
	db, err := f.Open(ctx, d.app.tenant)
	if err != nil {
		d.report("store opens", "", err)
		return ctx.Err()
	}
	detail := ""
	if f.Encrypted() {
		detail = "encrypted"
	}
	d.report("store opens", detail, nil)
	n, err := db.Conversations().Count(ctx)
	d.report("rows can be read", plural(n, "conversation"), err)
	return errors.Join(ctx.Err(), db.Close())
}

// skewed returns an error if a clock is too far from ours.
func skewed(skew, roundTrip time.Duration) error {
	if skew.Abs() <= maxSkew+roundTrip {
		return nil
	}
	return fmt.Errorf("it is %s ahead of this machine's; synchronize both", skew.Round(time.Second))
}

// bucket tests the operations of the store on an object in its bucket.
func (d *doctor) bucket(ctx context.Context, f *fleet.Fleet, quick bool) error {
	prefix := "doctor/" + rand.Text() + "/"
	content := bytes.Repeat([]byte("stet doctor\n"), 1000)
	key, bucket, began := prefix+"probe", f.Bucket(), time.Now()
	err := bucket.PutObject(ctx, key, bytes.NewReader(content), int64(len(content)))
	d.report("bucket takes objects", "", err)
	if err != nil {
		return ctx.Err()
	}
	got, err := readObject(ctx, f, key, 0, -1)
	if err == nil && !bytes.Equal(got, content) {
		err = errors.New("read back different bytes")
	}
	d.report("bucket gives them back", "", err)
	got, err = readObject(ctx, f, key, 5, 7)
	if err == nil && !bytes.Equal(got, content[5:12]) {
		err = errors.New("read back a different range")
	}
	d.report("bucket gives parts of them", "", err)
	made, err := objectTime(ctx, f, key)
	if err == nil {
		err = skewed(made.Sub(began), time.Since(began)+2*time.Second)
	}
	d.report("clock of the bucket", "", err)
	d.report("bucket removes objects", "", bucket.RemoveObjects(ctx, key))
	if quick {
		return ctx.Err()
	}
	for _, c := range contract.ObjectCases() {
		if c.Bytes > 1<<20 {
			continue // it costs money
		}
		d.report("objects: "+c.Name, "", c.Func(ctx, bucket, prefix))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func readObject(ctx context.Context, f *fleet.Fleet, key string, offset, length int64) ([]byte, error) {
	r, err := f.Bucket().OpenObject(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// objectTime is when an object was stored, by the bucket's clock.
func objectTime(ctx context.Context, f *fleet.Fleet, key string) (made time.Time, err error) {
	err = f.Bucket().ListObjects(ctx, key, "", func(o blob.ObjectInfo) error {
		made = o.Time
		return nil
	})
	if err == nil && made.IsZero() {
		err = errors.New("the object is not listed")
	}
	return made, err
}

// scratchTenant tests the promises on a scratch tenant.
func (d *doctor) scratchTenant(ctx context.Context, f *fleet.Fleet) error {
	scratch, err := f.Scratch(ctx)
	d.report("scratch tenant", "", err)
	if err != nil {
		return ctx.Err()
	}
	err = d.cases(ctx, scratch.Blobs(), scratch.Rows())
	// Also after an interruption: otherwise it would stay for a day.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	d.report("scratch tenant is removed", "", scratch.Remove(ending))
	return err
}
