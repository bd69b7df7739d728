package checkpoint

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// fold computes the link of the log from its rows.
func (f *fixture) fold() (link blob.ID) {
	f.t.Helper()
	for row, err := range f.rows.Scan(f.t.Context(), keyspace.Operations(), kv.ScanOptions{}) {
		must(f.t, err)
		var m stetv1.OperationRecord
		must(f.t, proto.Unmarshal(row.Value, &m))
		if len(m.Chain) > 0 && blob.ID(m.Chain) != link {
			f.t.Errorf("entry %d has another link than its predecessors give", m.Seq)
		}
		link = NextLink(link, Digest(row.Value, m.Original))
	}
	return link
}

// rewriteOperation changes the row of an entry.
func (f *fixture) rewriteOperation(seq uint64, change func(*stetv1.OperationRecord)) {
	f.t.Helper()
	row, err := f.rows.Get(f.t.Context(), keyspace.Operation(seq))
	must(f.t, err)
	var m stetv1.OperationRecord
	must(f.t, proto.Unmarshal(row.Value, &m))
	change(&m)
	data, err := marshal(&m)
	must(f.t, err)
	must(f.t, f.rows.Commit(f.t.Context(), &kv.Batch{Set: []kv.Set{{Key: row.Key, Value: data}}}))
}

func (f *fixture) note() {
	f.t.Helper()
	must(f.t, f.w.s.Log(f.t.Context(), &Operation{Kind: "note"}))
}

func (f *fixture) logEnds(entries uint64) {
	f.t.Helper()
	seq, link, err := f.w.s.LogEnd(f.t.Context())
	if err != nil || seq != entries || link != f.fold() {
		f.t.Errorf("the log ends at %d with %s, %v; it has %d entries and the link %s", seq, link, err, entries, f.fold())
	}
}

func TestTheLogIsAChain(t *testing.T) {
	f := newFixture(t)
	f.logEnds(0)
	for n := range uint64(3) {
		f.note()
		f.logEnds(n + 1)
	}
	// Entries of a release without links, in the middle and at the end.
	for _, seq := range []uint64{2, 3} {
		f.rewriteOperation(seq, func(m *stetv1.OperationRecord) { m.Chain = nil })
	}
	f.rewriteOperation(1, func(m *stetv1.OperationRecord) { m.Chain = nil })
	f.logEnds(3)
	f.note()
	f.logEnds(4)
	f.note()
	f.logEnds(5)
}

// A rewritten entry counts as what it was, so that the links after it stay.
func TestARewrittenEntryKeepsTheChain(t *testing.T) {
	f := newFixture(t)
	f.note()
	f.note()
	before := f.fold()
	f.rewriteOperation(1, func(m *stetv1.OperationRecord) {
		row, err := f.rows.Get(t.Context(), keyspace.Operation(1))
		must(t, err)
		m.Original, m.Description = rewritten(row.Value, m.Original), "***"
	})
	if f.fold() != before {
		t.Error("the link has changed")
	}
	f.logEnds(2)
}

// A damaged entry does not prevent the next operation.
func TestADamagedEntryOfTheLog(t *testing.T) {
	f := newFixture(t)
	f.note()
	must(t, f.rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: keyspace.Operation(1), Value: []byte{0xff}}}}))
	if _, _, err := f.w.s.LogEnd(t.Context()); err == nil {
		t.Error("the log is complete")
	}
	f.note()
	row, err := f.rows.Get(t.Context(), keyspace.Operation(2))
	must(t, err)
	var m stetv1.OperationRecord
	must(t, proto.Unmarshal(row.Value, &m))
	if len(m.Chain) != 0 {
		t.Errorf("entry 2 has the link %x", m.Chain)
	}
}
