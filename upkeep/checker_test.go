package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/upkeep"
)

// Damaged rows, some of them next to each other, in every family: each is named,
// and what lies behind is looked at as well.
func TestCheckNamesEveryDamagedRowAndGoesOn(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	rows := sealed.New(f.rows, nil)
	f.Store = conversation.New(f.blobs, rows, nil)
	times := map[string]int64{}
	for n := range 600 { // more than a page
		c := got(f.Create(ctx, conversation.Info{ID: fmt.Sprintf("c%03d", n)}))
		if n%20 == 0 || n > 590 {
			f.grow(t, c, fmt.Sprint(n), fmt.Sprint(n, " again"))
			times[c.ID()] = c.Head().Time.UnixMilli()
		}
	}
	got(f.Pin(ctx, "p", "c000", 1))
	got(f.Pin(ctx, "q", "c000", 2))

	want := map[string]string{
		keyspace.Head("c000"):                  "[c000]",
		keyspace.Head("c020"):                  "[c020]",
		keyspace.MessageHead("c040", "m-40"):   "[c040]",
		keyspace.Save("c000", 1):               "[c000]",
		keyspace.Save("c000", 2):               "[c000]",
		keyspace.Save("c599", 1):               "[c599]",
		keyspace.Pin("p"):                      "[]",
		keyspace.Conversation("c001"):          "[c001]",
		keyspace.Conversation("c599"):          "[c599]",
		keyspace.ByTime(times["c060"], "c060"): "[c060]",
		keyspace.Conversation("c598"):          "[c598]",
	}
	for i, key := range slices.Sorted(maps.Keys(want)) {
		row := got(f.rows.Get(ctx, key))
		if i%3 == 0 { // another release's envelope, with the check that it has
			row.Value[2] ^= 0x30
			row.Value[3] = ^row.Value[2]
		} else {
			row.Value[len(row.Value)-1] ^= 1
		}
		must(t, f.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: key, Value: row.Value}}}))
	}
	// A blob that only the last save of all leads to.
	gone := newTurn(t, "599 again").Structure.ID()
	gen := got(f.mem.Begin(ctx))
	got(f.mem.Sweep(ctx, gen, blob.SweepOptions{Live: func(id blob.ID) bool { return id != gone }}))

	report, err := upkeep.New(upkeep.Stores{Blobs: f.blobs, Rows: rows, Inventory: f.mem}).Check(ctx, nil)
	must(t, err)
	got := map[string]string{}
	for _, d := range report.Damage {
		switch d.Kind {
		case upkeep.DamageRow:
			got[d.Key] = fmt.Sprint(d.Conversations)
		case upkeep.DamageMissing:
			if d.ID != gone || fmt.Sprint(d.Conversations) != "[c599]" {
				t.Errorf("missing %s in %v", d.ID.Short(), d.Conversations)
			}
			gone = blob.ID{}
		default:
			t.Errorf("damage %+v", d)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("damaged rows\n%v, want\n%v", got, want)
	}
	if !gone.IsZero() {
		t.Error("the blob behind the damaged rows was not missed")
	}
}

// Rows that can be read and mean nothing, of kinds that no other part of a check reads.
func TestCheckNamesRowsThatMeanNothing(t *testing.T) {
	f := newFixture(t)
	f.grow(t, got(f.Create(t.Context(), conversation.Info{ID: "talk"})), "hello")
	want := []string{keyspace.Changed("talk") + ":twice", keyspace.ConversationOf("", 1, "talk") + ":twice", keyspace.Setting("filters")}
	slices.Sort(want)
	for _, key := range want {
		must(t, f.rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte("?")}}}))
	}
	report := got(upkeep.New(upkeep.Stores{Blobs: f.blobs, Rows: f.rows, Inventory: f.mem}).Check(t.Context(), nil))
	var named []string
	for _, d := range report.Damage {
		if d.Kind == upkeep.DamageRow {
			named = append(named, d.Key)
		}
	}
	slices.Sort(named)
	if !slices.Equal(named, want) {
		t.Errorf("named are %q, want %q", named, want)
	}
}

func TestCheckEndsWhereNoRowCanBeRead(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	f := newFixture(t)
	f.grow(t, got(f.Create(ctx, conversation.Info{ID: "c"})), "1")
	cancel()
	if report, err := f.upkeep().Check(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v, want the context's error", report, err)
	}
}

// busyRows are rows of a store in which something happens before a row is read.
type busyRows struct {
	kv.Store
	key    string
	before func()
}

func (b *busyRows) Get(ctx context.Context, key string) (kv.Row, error) {
	if key == b.key {
		b.before()
	}
	return b.Store.Get(ctx, key)
}

// ScanBeside reads the row after the others that it returns.
func (b *busyRows) ScanBeside(ctx context.Context, in kv.Range, opts kv.ScanOptions, beside ...kv.Beside) ([]kv.Found, error) {
	all, err := b.Store.ScanBeside(ctx, in, opts, beside...)
	for _, found := range all {
		for i, row := range found.Rows {
			if row.Key == b.key && err == nil {
				found.Rows[i], err = b.Get(ctx, b.key)
			}
		}
	}
	return all, err
}

// A writer saves between the look at the history and the look at the head, each time.
func TestCheckBesideAWriter(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := got(f.Create(ctx, conversation.Info{ID: "c"}))
	saves := 0
	rows := &busyRows{Store: f.rows, key: keyspace.Head("c"), before: func() {
		saves++
		f.grow(t, c, fmt.Sprint(saves))
	}}
	f.grow(t, c, "first")
	report := got(upkeep.New(upkeep.Stores{Blobs: f.blobs, Rows: rows}).Check(ctx, nil))
	if saves < 2 || !report.OK() {
		t.Errorf("after %d saves meanwhile: %+v", saves, report.Damage)
	}
}
