package stet

import (
	"context"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/blob/metered"
	"github.com/stet-dev/stet/blob/retrying"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/mirror"
)

// Remote is a place for copies of a store's blobs: a server or a bucket.
type Remote struct {
	// Name identifies the remote; see mirror.Remote.
	Name string
	// Blobs stores the copies. It gets whole contents under their SHA-256, which a server
	// verifies.
	Blobs blob.Store
	// Opaque means that Blobs takes any bytes under any name, as a bucket does. It then
	// gets them compressed and, if the store is encrypted, sealed with the store's keys.
	Opaque bool
	// Keep and Ready are the fields of the same name in mirror.Remote.
	Keep  func(ctx context.Context, origin string, ids []blob.ID) (missing []blob.ID, err error)
	Ready func(ctx context.Context) error
	// Remove, if set, removes copies by the names that Blobs knows.
	Remove func(ctx context.Context, names []blob.ID) error
	// Close, if set, is called by DB.Close.
	Close func() error
}

// remoteRetries is how often a call to the remote is repeated. A call that still fails is
// left to the next attempt to send.
const remoteRetries = 2

// mayPass reports whether a failure of the remote may soon go away by itself. A rejected
// token stays rejected.
func mayPass(err error) bool {
	switch fault.Of(err) {
	case fault.Unknown, fault.Busy, fault.Unreachable:
		return retrying.Transient(err)
	}
	return false
}

// buildMirror puts a remote behind the local blobs, or returns nil without one. Like the
// local layers, those of a bucket compress before they seal.
func buildMirror(local blob.Store, arrivals blob.Arrivals, crypt *encrypted.Store, ring *keyring.Ring, opts *Options) *mirror.Store {
	r := opts.Remote
	if r == nil {
		return nil
	}
	measured := &metered.Options{MeterProvider: opts.MeterProvider}
	var blobs blob.Store = metered.New(r.Blobs, metered.Remote, measured)
	blobs = metered.New(retrying.New(blobs, &retrying.Options{MaxRetries: remoteRetries, Retryable: mayPass}), metered.Retry, measured)
	name := func(id blob.ID) blob.ID { return id }
	if r.Opaque {
		if ring != nil {
			sealing := encrypted.New(blobs, ring, &encrypted.Options{Tenant: opts.Tenant, Shared: true})
			blobs, name = sealing, sealing.Name
		}
		blobs = compressed.New(blobs, nil)
	}
	blobs = blob.Checked(blobs) // a remote that returns wrong bytes must not be believed
	out := &mirror.Options{MeterProvider: opts.MeterProvider}
	if crypt != nil {
		out.Names = crypt.Name
	}
	return mirror.New(local, arrivals, mirror.Remote{Name: r.Name, Blobs: blobs, Keep: r.Keep, Ready: r.Ready, Remove: r.removing(name)}, out)
}

// removing returns Remove for the ids that the local store knows; nil without it.
func (r *Remote) removing(name func(blob.ID) blob.ID) func(context.Context, []blob.ID) error {
	if r.Remove == nil {
		return nil
	}
	return func(ctx context.Context, ids []blob.ID) error {
		names := make([]blob.ID, len(ids))
		for i, id := range ids {
			names[i] = name(id)
		}
		return r.Remove(ctx, names)
	}
}

// Mirror returns the copies of the store at its remote, or nil without one.
func (db *DB) Mirror() *mirror.Store { return db.mirror }

// KeepFor protects blobs from the collector on behalf of another store, and returns those
// that are missing here; see mirror.Keep.
func (db *DB) KeepFor(ctx context.Context, origin string, ids []blob.ID) (missing []blob.ID, err error) {
	return mirror.Keep(ctx, db.rows, origin, ids)
}
