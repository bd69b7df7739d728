package stet

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/cached"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/blob/metered"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/pack"
)

// Inventory is the part of a driver that housekeeping needs: to enumerate and to
// collect.
type Inventory interface {
	blob.Lister
	blob.Sweeper
}

// Backend is a pair of drivers that share their durability: a commit to Rows
// makes the blobs that it names durable in Blobs.
type Backend struct {
	Blobs blob.Store
	Rows  kv.Store
	// Inventory is what the collector works on; nil where there is none.
	Inventory Inventory
	// Rewriter exchanges the stored bytes of blobs, as compressing later and sealing
	// with another key do; nil where Blobs cannot.
	Rewriter blob.Rewriter
	// Arrivals finds what was stored as it came; without it and Rewriter, blobs are
	// compressed when they are put.
	Arrivals blob.Arrivals
	// Objects is the bucket for idle conversations (see DB.Seal); nil where there is
	// none.
	Objects blob.Objects
	// Unfinished, if set, removes what killed writers left in Objects: see pack.Driver.
	Unfinished func(ctx context.Context, prefix string, before time.Time) (pack.SweepResult, error)
	// Close releases the drivers; nil where there is nothing to release.
	Close func() error
}

// packed is what packs need of a backend.
func (b Backend) packed() pack.Driver {
	return pack.Driver{
		Blobs: b.Blobs, Rows: b.Rows, Objects: b.Objects,
		Lister: b.Inventory, Rewriter: b.Rewriter, Unfinished: b.Unfinished,
	}
}

// stack is a backend with every layer on top.
type stack struct {
	blobs     blob.Store
	rows      kv.Store
	inventory Inventory
	lister    blob.Lister // nil where the store cannot be enumerated
	cache     *cached.Store
	crypt     *encrypted.Store // nil unless encrypted
	settler   *settler         // nil where compression is not put off
	seal      *sealed.Store
	packs     *pack.Store // nil where there is no bucket
	bare      kv.Store    // rows as they are stored, without those of sealed conversations; nil where they are elsewhere
	live      kv.Store    // rows without those of sealed conversations
	sealing   *sealed.Options
}

// buildStack puts the layers on a backend. This is the only place that knows
// their order:
//
//	metered     counts what callers see
//	cached      holds plain content in memory, verified when it came in
//	Checked     verifies ids, above everything that changes bytes
//	compressed  before encryption, since ciphertext does not compress
//	encrypted   below it nothing is readable
//	packs       moves what is idle as it is stored, so that it stays unreadable
//
// It also hands each layer what the one below can do beside blob.Store. Layers do not
// look for that themselves: whatever stands in between would have to pass it on, and
// one that changes bytes must not be gone around.
//
// unmarked says that the store is to be encrypted and nothing says so yet.
func buildStack(b Backend, ring *keyring.Ring, opts *Options, unmarked bool) stack {
	s := stack{inventory: b.Inventory}
	blobs, rows, live := b.Blobs, b.Rows, b.Rows
	if b.Objects != nil {
		s.packs = pack.New(b.packed(), nil)
		blobs, rows, live = s.packs.Blobs(), s.packs.Rows(), s.packs.Bare()
	}
	s.bare = live
	seal := &sealed.Options{}
	var replacer blob.Replacer = b.Rewriter
	arrivals := b.Arrivals
	if ring != nil {
		crypt := encrypted.New(blobs, ring, &encrypted.Options{
			Tenant: opts.Tenant, Lister: b.Inventory, Sweeper: b.Inventory, Replacer: replacer, Arrivals: arrivals,
		})
		seal.Ring, seal.Tenant, seal.Names = ring, opts.Tenant, crypt.Name
		blobs, s.crypt = crypt, crypt
		if s.inventory != nil {
			s.inventory = crypt
		}
		if replacer != nil {
			replacer = crypt
		}
		if arrivals != nil {
			arrivals = crypt
		}
	}
	small := &compressed.Options{}
	if s.settler = newSettler(replacer, arrivals); s.settler != nil {
		small.Later = s.settler.noticed
	}
	var cache *cached.Store
	small.Recall = func(id blob.ID) []byte { return cache.Peek(id) }
	layer := compressed.New(blobs, small)
	cache = cached.New(blob.Checked(layer), &cached.Options{MaxBytes: opts.CacheBytes, MeterProvider: opts.MeterProvider})
	s.cache = cache
	s.blobs = metered.New(s.cache, "cached", &metered.Options{MeterProvider: opts.MeterProvider})
	s.lister = s.inventory
	s.seal, s.sealing = sealed.New(rows, seal), seal
	s.rows, s.live = door{s.seal}, s.seal
	if s.packs != nil {
		s.live = sealed.New(live, seal)
	}
	if unmarked {
		done := new(atomic.Bool)
		s.rows, s.live = &marking{s.rows, done}, &marking{s.live, done}
	}
	if s.settler != nil {
		s.settler.store, s.settler.rows = layer, s.rows
	}
	return s
}
