package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
)

// Store is a store that can be measured. Its services yield what keeps blobs of the
// store alive, without archived conversations.
type Store struct {
	Blobs         blob.Store
	Conversations *conversation.Store
	Checkpoints   *checkpoint.Service
	Agents        *cloudagent.Store
	// Others are further services that keep blobs alive.
	Others []conversation.Roots

	// Lister enumerates the stored blobs. If it is nil, sizes are those of contents,
	// and unreferenced blobs are unknown.
	Lister blob.Lister
	// Archived yields the archived conversations; nil if there are none.
	Archived func(context.Context) iter.Seq2[Archived, error]
	// Names is where titles are looked up, including those of archived conversations;
	// nil means Conversations.
	Names *conversation.Store
	// Rows counts the rows of the store; nil if that is unknown.
	Rows func(context.Context) (int64, error)
	// Dir is the directory of the store; empty if it has none on this machine.
	Dir string
}

// Archived is a conversation whose content is in packs.
type Archived struct {
	ID      string
	Objects int64 // packs
	Count         // what is in them
}

// Options configure a report; nil gives the defaults.
type Options struct {
	// History adds the figures that need the contents and the order in which they were
	// saved: the points, the conversations, and the logical and content bytes.
	History bool
	// MaxRead limits the bytes of content that are read; 0 means no limit. A report that
	// reaches it is partial.
	MaxRead int64
	// Points limits the number of points over time, 160 by default.
	Points int
	// Conversations limits the list to the largest conversations, 1,000 by default.
	Conversations int
}

// Count is a number of blobs and the bytes that they take.
type Count struct{ Blobs, Bytes int64 }

func (c *Count) add(bytes int64) { c.Blobs++; c.Bytes += bytes }

// Kind is what blobs of one kind take.
type Kind struct {
	Name string
	Count
}

// Point is what had been stored by a time.
type Point struct {
	UnixMS int64
	// Bytes has one figure for each of the report's kinds.
	Bytes []int64
}

// Conversation is what one conversation takes. In a report that is what it added:
// content that an earlier conversation had stored counts for that one.
type Conversation struct {
	// ID is empty for checkpoints that belong to no conversation.
	ID, Title string
	Archived  bool
	Count
}

// Report is what a store takes.
type Report struct {
	// Listed means that the store enumerates its blobs. If not, bytes are those of
	// contents, and All, Unreferenced and Deltas are zero.
	Listed bool
	// All counts every stored blob; Deltas is how many are stored as the difference from
	// another.
	All    Count
	Deltas int64
	// Kinds are the blobs that something refers to, the largest kind first.
	Kinds []Kind
	// Unreferenced counts blobs that nothing refers to; zero in a partial report.
	Unreferenced Count
	// Partial means that so much is stored that only a part was examined.
	Partial bool
	// Damaged lists the rows and trees that could not be read.
	Damaged []error

	// Archived counts the archived conversations; Packs and PackBytes are what they
	// take.
	Archived, Packs, PackBytes int64
	// Rows is the number of rows; Disk is the size of the store's files.
	Rows, Disk int64

	// Logical is the size of everything that was saved, in full and each time that it
	// was saved; Content counts everything once.
	Logical, Content int64
	// Points are in the order of time. They leave out what has no time, such as agents.
	Points        []Point
	Conversations []Conversation

	sizes *ledger
}

// Referenced sums up the kinds.
func (r *Report) Referenced() (sum Count) {
	for _, k := range r.Kinds {
		sum.Blobs += k.Blobs
		sum.Bytes += k.Bytes
	}
	return sum
}

// Stored returns how many bytes a blob takes, or false if the store did not list it.
func (r *Report) Stored(id blob.ID) (int64, bool) { return r.sizes.size(id) }

// Measure measures a store.
func (s *Store) Measure(ctx context.Context, opts *Options) (*Report, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Points, o.Conversations = cmp.Or(o.Points, 160), cmp.Or(o.Conversations, 1000)
	r, err := s.measure(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("measure the store: %w", err)
	}
	return r, nil
}

func (s *Store) measure(ctx context.Context, o Options) (*Report, error) {
	book, damage, err := s.inventory(ctx)
	if err != nil {
		return nil, err
	}
	r := &Report{Listed: book.listed, All: book.all(), Deltas: book.deltas, sizes: book}
	m := newMeter(s.Blobs, book, &o)
	m.damage(damage)
	var saved *history
	if o.History {
		saved = &history{store: s, meter: m, points: o.Points}
		err = saved.measure(ctx)
	}
	if err == nil {
		err = s.rest(ctx, m)
	}
	if r.Partial = m.tooDeep.Load() || errors.Is(err, errEnough); err != nil && !r.Partial {
		return nil, err
	}
	if r.Damaged = m.damaged; book.listed && !r.Partial {
		r.Unreferenced = book.uncounted()
	}
	order := m.byBytes()
	for _, i := range order {
		r.Kinds = append(r.Kinds, m.kinds[i])
	}
	if err := s.archived(ctx, r, saved); err != nil {
		return nil, err
	}
	if saved != nil {
		r.Logical, r.Content, r.Points = saved.logical, m.content, saved.ordered(order)
		if r.Conversations, err = s.titled(ctx, saved.largest(o.Conversations)); err != nil {
			return nil, err
		}
	}
	return r, s.around(ctx, r)
}

// archived counts the archived conversations, and adds them to those of a history.
func (s *Store) archived(ctx context.Context, r *Report, saved *history) error {
	if s.Archived == nil {
		return nil
	}
	for a, err := range s.Archived(ctx) {
		if err != nil {
			return err
		}
		r.Archived++
		r.Packs += a.Objects
		r.PackBytes += a.Bytes
		if saved != nil {
			saved.conversations = append(saved.conversations, Conversation{ID: a.ID, Archived: true, Count: a.Count})
		}
	}
	return nil
}

// around measures everything but blobs.
func (s *Store) around(ctx context.Context, r *Report) (err error) {
	if s.Rows != nil {
		if r.Rows, err = s.Rows(ctx); err != nil {
			return err
		}
	}
	if s.Dir != "" {
		r.Disk, err = Disk(ctx, s.Dir)
	}
	return err
}

// titled looks up titles. A conversation that is gone or damaged has none.
func (s *Store) titled(ctx context.Context, list []Conversation) ([]Conversation, error) {
	names := cmp.Or(s.Names, s.Conversations)
	for i := range list {
		if list[i].ID == "" {
			continue
		}
		info, err := names.Get(ctx, list[i].ID)
		if err != nil && !errors.Is(err, conversation.ErrNotFound) && !conversation.Damaged(err) {
			return nil, err
		}
		list[i].Title = info.Title
	}
	return list, nil
}

// bySize puts the largest first.
func bySize(list []Conversation) {
	slices.SortFunc(list, func(a, b Conversation) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.ID, b.ID))
	})
}
