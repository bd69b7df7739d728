package upkeep_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/upkeep"
)

const plainText = "text/plain"

func TestCollectKnowsStreams(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	streams := stream.New(f.blobs, f.rows, nil)
	large := func(s string) []byte { return bytes.Repeat([]byte(s), 64<<10) }
	create := func(path string, c stream.Config, data []byte) {
		t.Helper()
		_, _, err := streams.Create(ctx, path, c, data)
		must(t, err)
	}
	ttl := uint64(0)
	create("kept", stream.Config{ContentType: plainText}, large("kept"))
	create("fork", stream.Config{Fork: &stream.Fork{Source: "kept"}}, nil)
	create("expired", stream.Config{ContentType: plainText, Expiry: stream.Expiry{TTL: &ttl}}, large("expired"))
	must(t, streams.Delete(ctx, "kept")) // its fork needs it

	if done := got(f.upkeep().Collect(ctx, &upkeep.CollectOptions{Grace: -1, DryRun: true})); done.Removed != 0 {
		t.Errorf("a dry run would remove %d blobs: it expires nothing", done.Removed)
	}
	if done := got(f.upkeep().Collect(ctx, noGrace)); done.Removed != 1 {
		t.Errorf("removed %d blobs, want that of the expired stream", done.Removed)
	}
	if have := got(f.blobs.Has(ctx, blob.Sum(large("kept")))); !have[0] {
		t.Error("the blob of a stream with a fork is gone")
	}
	report := got(f.upkeep().Check(ctx, &upkeep.CheckOptions{ReadData: true}))
	if !report.OK() {
		t.Errorf("%+v", report)
	}
	must(t, streams.Delete(ctx, "fork"))
	if done := got(f.upkeep().Collect(ctx, noGrace)); done.Removed != 1 {
		t.Errorf("removed %d blobs, want that of the deleted stream", done.Removed)
	}
}

func TestCheckFindsLostRowsOfStreams(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	streams := stream.New(f.blobs, f.rows, nil)
	info, _, err := streams.Create(ctx, "s", stream.Config{ContentType: plainText}, []byte("1"))
	must(t, err)
	for _, data := range []string{"2", "3"} {
		_, err := streams.Append(ctx, "s", stream.Append{ContentType: plainText, Data: []byte(data)})
		must(t, err)
	}
	for _, key := range []string{
		keyspace.StreamAppend(info.ID, 1), keyspace.StreamAppend(info.ID, 2), keyspace.StreamAppend(info.ID, 3), keyspace.Stream("s"),
	} {
		row := got(f.rows.Get(ctx, key))
		must(t, f.rows.Commit(ctx, &kv.Batch{Delete: []string{key}}))
		report := got(f.upkeep().Check(ctx, nil))
		named := false
		for _, d := range report.Damage {
			named = named || strings.Contains(d.Err.Error(), key)
		}
		if report.OK() || !named {
			t.Errorf("without %s: %+v", key, report.Damage)
		}
		must(t, f.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: key, Value: row.Value}}}))
	}
}
