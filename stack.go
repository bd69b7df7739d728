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
	"github.com/stet-dev/stet/mirror"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
)

// Backend is a pair of drivers that share their durability: a commit to Rows
// makes the blobs that it names durable in Blobs.
type Backend struct {
	Blobs blob.Store
	Rows  kv.Store
	// Kind, if set, is the name under which the calls of Blobs are measured, such as
	// metered.InMemory.
	Kind string
	// Inventory lists and sweeps blobs for the collector; nil if not supported.
	Inventory upkeep.Inventory
	// Rewriter replaces the stored bytes of blobs, for compressing later and sealing
	// with another key; nil if not supported.
	Rewriter blob.Rewriter
	// Inline, if set, reads small blobs as Rewriter.Kept does: see pack.Driver.
	Inline func(ctx context.Context, id blob.ID) (one blob.Blob, inline bool, err error)
	// Arrivals finds blobs that were stored uncompressed; without it and Rewriter,
	// blobs are compressed when they are put.
	Arrivals blob.Arrivals
	// Objects is the bucket for idle conversations (see DB.Archive); nil without one.
	Objects blob.Objects
	// Unfinished, if set, removes leftovers of killed writers from Objects: see
	// pack.Driver.
	Unfinished func(ctx context.Context, prefix string, before time.Time) (pack.SweepResult, error)
	// Shrink returns free space to the file system; nil if not supported.
	Shrink func(context.Context) error
	// Stats counts what the backend holds, rows by family; nil if not supported.
	Stats func(ctx context.Context, family func(key string) string) (sqlite.Stats, error)
	// Close releases the drivers; nil if there is nothing to release.
	Close func() error
}

// packed is the part of a backend that packs need.
func (b Backend) packed() pack.Driver {
	return pack.Driver{
		Blobs: b.Blobs, Rows: b.Rows, Objects: b.Objects,
		Lister: b.Inventory, Rewriter: b.Rewriter, Inline: b.Inline, Unfinished: b.Unfinished,
	}
}

// stack is a backend with every layer on top.
type stack struct {
	blobs     blob.Store
	rows      kv.Store
	inventory upkeep.Inventory
	lister    blob.Lister // nil where the store cannot be enumerated
	cache     *cached.Store
	crypt     *encrypted.Store  // nil unless encrypted
	compactor *upkeep.Compactor // nil where blobs are compressed when they are put
	mirror    *mirror.Store     // nil without a remote
	repairer  blob.Repairer     // nil where stored blobs cannot be exchanged
	seal      *sealed.Store
	live      kv.Store // rows without those of archived conversations
	upkeep    *upkeep.Service
}

// buildStack puts the layers on a backend. This is the only place that defines their
// order:
//
//	metered     counts what callers see; the layers below are measured under their names
//	cached      holds plain content in memory, verified when it came in
//	mirror      copies to a remote what the layers below store, and fetches it back
//	Checked     verifies ids, above everything that changes bytes; repairs damage
//	compressed  before encryption, since ciphertext does not compress
//	encrypted   below it nothing is readable
//	packs       moves idle content in its stored form, so it stays unreadable
//
// It also gives each layer the optional interfaces of the one below. Layers do not
// look them up themselves: every layer in between would have to forward them, and a
// layer that changes bytes must not be bypassed.
//
// unmarked means that the store is encrypted but not marked yet.
func buildStack(b Backend, ring *keyring.Ring, opts *Options, unmarked bool) stack {
	s := stack{inventory: b.Inventory}
	keep := upkeep.Stores{Bare: b.Rows}
	if b.Kind != "" {
		b.Blobs = metered.New(b.Blobs, b.Kind, &metered.Options{MeterProvider: opts.MeterProvider})
	}
	blobs, rows := b.Blobs, b.Rows
	if b.Objects != nil {
		keep.Packs = pack.New(b.packed(), nil)
		keep.Bare = keep.Packs.Bare()
		blobs, rows = keep.Packs.Blobs(), keep.Packs.Rows()
	}
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
	if replacer != nil && arrivals != nil {
		s.compactor = upkeep.NewCompactor(replacer, arrivals, opts.CompactManually)
		small.Later = s.compactor.Notice
	}
	var cache *cached.Store
	small.Recall = func(id blob.ID) []byte { return cache.Peek(id) }
	if s.crypt != nil {
		blobs = metered.New(s.crypt, metered.Encrypted, &metered.Options{MeterProvider: opts.MeterProvider})
	}
	layer := compressed.New(blobs, small)
	checked := blob.Checked(layer)
	if replacer != nil {
		s.repairer = layer.Repairer(replacer)
		checked = blob.Repairing(layer, s.repairer)
	}
	s.mirror = buildMirror(checked, arrivals, s.crypt, ring, opts)
	if s.mirror != nil {
		checked = metered.New(s.mirror, metered.WriteThrough, &metered.Options{MeterProvider: opts.MeterProvider})
	}
	cache = cached.New(checked, &cached.Options{MaxBytes: opts.CacheBytes, MeterProvider: opts.MeterProvider})
	s.cache = cache
	s.blobs = metered.New(s.cache, "cached", &metered.Options{MeterProvider: opts.MeterProvider})
	s.lister = s.inventory
	s.seal = sealed.New(rows, seal)
	s.rows, keep.Live = door{s.seal}, s.seal
	if keep.Packs != nil {
		keep.Live = sealed.New(keep.Bare, seal)
	}
	if unmarked {
		done := new(atomic.Bool)
		s.rows, keep.Live = &marking{s.rows, done}, &marking{keep.Live, done}
	}
	if s.mirror != nil {
		s.mirror.Attach(s.rows)
		s.rows, keep.Live = s.mirror.Rows(s.rows), s.mirror.Rows(keep.Live)
	}
	keep.Roots = append(keep.Roots, mirror.Roots(keep.Live))
	if s.compactor != nil {
		s.compactor.Attach(layer, s.rows, b.Shrink)
	}
	keep.Blobs, keep.Rows, keep.Inventory, keep.Crypt, keep.Sealed = s.blobs, s.rows, s.inventory, s.crypt, s.seal
	keep.Open = func(rows kv.Store) kv.Store { return sealed.New(rows, seal) }
	s.live, s.upkeep = keep.Live, upkeep.New(keep)
	return s
}
