package upkeep

import (
	"context"
	"iter"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/document"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/mirror"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/subscription"
	"github.com/stet-dev/stet/thread"
)

// ErrNoInventory says that the store cannot enumerate its content.
var ErrNoInventory = fault.Named(fault.Unsupported, "no-inventory", "this kind of store cannot list its contents from here")

// Inventory is the part of a driver that upkeep needs: to enumerate and to sweep.
type Inventory interface {
	blob.Lister
	blob.Sweeper
}

// Stores are what a Service works on. Blobs and Rows are required.
type Stores struct {
	// Blobs and Rows are the stores with every layer, as the services see them.
	Blobs blob.Store
	Rows  kv.Store
	// Inventory enumerates and sweeps the blobs, by the ids that Blobs uses. Without it
	// nothing is collected, and Check does not look for unreferenced blobs.
	Inventory Inventory
	// Roots are those of further services, which keep blobs under rows of their own.
	Roots []conversation.Roots

	// Packs holds archived conversations; nil without a bucket.
	Packs *pack.Store
	// Live is Rows without the rows of archived conversations; nil means Rows.
	Live kv.Store
	// Bare holds the rows of Live as they are stored, below the layer that seals
	// values; nil if they are elsewhere.
	Bare kv.Store
	// Open puts the layers between Bare and Live on other rows; nil means none.
	Open func(kv.Store) kv.Store

	// Crypt is the layer that encrypts blobs, and Sealed the one that seals rows; nil
	// for a plain store.
	Crypt  *encrypted.Store
	Sealed *sealed.Store
}

// Service does the upkeep of a store. It is safe for concurrent use.
type Service struct {
	stores        Stores
	conversations *conversation.Store // all of them
}

// New returns a service for some stores.
func New(stores Stores) *Service {
	if stores.Live == nil {
		stores.Live = stores.Rows
	}
	if stores.Open == nil {
		stores.Open = func(rows kv.Store) kv.Store { return rows }
	}
	return &Service{stores: stores, conversations: conversation.New(stores.Blobs, stores.Rows, nil)}
}

// Holders are the services that keep blobs alive, as Collect sees them: archived
// conversations need no blobs of the store.
type Holders struct {
	Conversations, Checkpoints, Agents conversation.Roots
	Others                             []conversation.Roots
}

// Holders returns what refers to the store's blobs, by service.
func (s *Service) Holders() Holders { return s.holders(s.stores.Live) }

func (s *Service) holders(rows kv.Store) Holders {
	return Holders{
		Conversations: conversation.New(s.stores.Blobs, rows, nil).Roots,
		Checkpoints:   both(checkpoint.New(s.stores.Blobs, rows, nil).Roots, jsoncheckpoint.NewStore(rows).Roots),
		Agents:        cloudagent.New(s.stores.Blobs, rows, nil).Roots,
		Others:        append([]conversation.Roots{stream.New(s.stores.Blobs, rows, nil).Roots, thread.New(s.stores.Blobs, rows, nil).Roots, document.Open(s.stores.Blobs, rows, nil).Roots}, s.stores.Roots...),
	}
}

// others returns all but the conversations.
func (h Holders) others() []conversation.Roots {
	return append([]conversation.Roots{h.Checkpoints, h.Agents}, h.Others...)
}

// all returns all of them.
func (h Holders) all() []conversation.Roots {
	return append([]conversation.Roots{h.Conversations}, h.others()...)
}

// both yields the roots of two services. Like each of them it continues after a row
// that cannot be read.
func both(one, other conversation.Roots) conversation.Roots {
	return func(ctx context.Context) iter.Seq2[graph.Root, error] {
		return func(yield func(graph.Root, error) bool) {
			for _, roots := range []conversation.Roots{one, other} {
				for root, err := range roots(ctx) {
					if !yield(root, err) {
						return
					}
				}
			}
		}
	}
}

// chain yields the roots of several services, one after the other.
func chain(ctx context.Context, all []conversation.Roots) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for _, roots := range all {
			for root, err := range roots(ctx) {
				if !yield(root, err) || err != nil {
					return
				}
			}
		}
	}
}

// CheckRow returns the error that the readers of a row would return. It accepts
// unknown rows.
func CheckRow(row kv.Row) error {
	for _, check := range []func(kv.Row) error{conversation.CheckRow, checkpoint.CheckRow, cloudagent.CheckRow, stream.CheckRow, subscription.CheckRow, thread.CheckRow, document.CheckRow, mirror.CheckRow} {
		if err := check(row); err != nil {
			return err
		}
	}
	return nil
}

// only is the range of one key.
func only(key string) kv.Range { return kv.Range{Start: key, End: key + "\x00"} }
