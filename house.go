package stet

import (
	"context"
	"errors"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// ErrNoInventory says that the backend cannot enumerate what it holds.
var ErrNoInventory = errors.New("this kind of store cannot be enumerated from here")

// Holders gives what keeps blobs alive, as Collect sees it: what is sealed needs no
// blob of the store.
type Holders struct{ Conversations, Checkpoints, Agents conversation.Roots }

// Holders returns what refers to the store's blobs, by service.
func (db *DB) Holders() Holders {
	if db.packs == nil {
		return Holders{db.conversations.Roots, db.Checkpoints().Roots, db.Agents().Roots}
	}
	return Holders{db.unsealed().Roots, checkpoint.New(db.blobs, db.live, nil).Roots, cloudagent.New(db.blobs, db.live, nil).Roots}
}

// roots gives what other services than conversations keep alive.
func (db *DB) roots() []conversation.Roots {
	h := db.Holders()
	return []conversation.Roots{h.Checkpoints, h.Agents}
}

// unsealed returns the conversations as Collect sees them.
func (db *DB) unsealed() *conversation.Store {
	if db.packs == nil {
		return db.conversations
	}
	return conversation.New(db.blobs, db.live, nil)
}

// List calls fn for every stored blob, in the order of their ids, wherever the
// store is.
func (db *DB) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	if db.lister == nil {
		return ErrNoInventory
	}
	return db.lister.List(ctx, after, fn)
}

// Collect removes the blobs that nothing refers to, while writers go on.
func (db *DB) Collect(ctx context.Context, opts *conversation.CollectOptions) (conversation.CollectResult, error) {
	if db.collect != nil {
		return db.collect(ctx, opts)
	}
	if db.inventory == nil {
		return conversation.CollectResult{}, ErrNoInventory
	}
	return db.unsealed().Collect(ctx, db.inventory, db.roots(), opts)
}

// Reencrypt seals everything anew that is sealed with a retired key. It may be
// interrupted and called again. progress, if set, is called for every page. What
// is in packs cannot be changed there: sealed conversations are brought back.
func (db *DB) Reencrypt(ctx context.Context, progress func()) error {
	if db.crypt == nil {
		return errors.New("the store is not encrypted")
	}
	if err := db.UnsealAll(ctx); err != nil {
		return err
	}
	_, err := db.crypt.Reencrypt(ctx, &encrypted.ReencryptOptions{
		Progress: func(encrypted.ReencryptResult) error {
			if progress != nil {
				progress()
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	// What is in quarantine does not open, and stays as it is.
	aside := keyspace.Quarantine()
	for _, rows := range []kv.Range{{End: aside.Start}, {Start: aside.End}} {
		if _, err := db.seal.Reseal(ctx, rows); err != nil {
			return err
		}
	}
	if db.engine == nil {
		return nil
	}
	return db.dropStaleIndexes()
}
