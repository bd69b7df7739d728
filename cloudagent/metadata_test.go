package cloudagent_test

import (
	"encoding/base64"
	"errors"
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// reference is a row as the editor writes it.
const reference = "CiBkVXYHwOsxHWxSepogRYRrnxCAA6Llb33OVaNLvjZSlRISMDAwMDAwMDAwMDAwMDAwOS0wGQAA/Vb+vHhCIAIoAQ=="

// pastState is the state that reference points at.
const pastState = "64557607c0eb311d6c527a9a2045846b9f108003a2e56f7dce55a34bbe365295"

func TestMetadataOfTheReference(t *testing.T) {
	m, err := cloudagent.ParseMetadata([]byte(reference))
	if err != nil {
		t.Fatal(err)
	}
	if m.State.String() != pastState || m.OffsetKey != "0000000000000009-0" || m.Status != idle || m.Time.UnixMilli() != 1700000002000 {
		t.Errorf("metadata is %+v at %d", m, m.Time.UnixMilli())
	}
	value, err := cloudagent.EncodeMetadata(m)
	if err != nil || string(value) != reference {
		t.Errorf("written again it is %s, %v; want %s", value, err, reference)
	}
	if o, err := cloudagent.ParseOffset(m.OffsetKey); err != nil || o != (cloudagent.Offset{Seq: 9}) {
		t.Errorf("its offset is %v, %v", o, err)
	}
}

// row builds metadata with a time of any type and any version.
func row(time, version []byte) []byte {
	id := blob.Sum([]byte("state"))
	raw := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), id[:])
	raw = append(append(raw, time...), version...)
	return []byte(base64.StdEncoding.EncodeToString(raw))
}

func varint(num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
}

func double(num protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, num, protowire.Fixed64Type), math.Float64bits(v))
}

func TestMetadataTimes(t *testing.T) {
	for name, c := range map[string]struct {
		time []byte
		want int64
	}{
		"double":     {double(3, 1700000000123), 1700000000123},
		"integer":    {varint(3, 1700000000123), 1700000000123},
		"none":       {nil, 0},
		"no number":  {double(3, math.NaN()), 0},
		"infinite":   {double(3, math.Inf(1)), 0},
		"before all": {double(3, -5), 0},
		"other unknown fields first": {
			append(protowire.AppendString(protowire.AppendTag(nil, 77, protowire.BytesType), "x"), varint(3, 42)...), 42},
	} {
		m, err := cloudagent.ParseMetadata(row(c.time, varint(5, 1)))
		if err != nil || !m.Time.Equal(time.UnixMilli(c.want)) {
			t.Errorf("%s: %d, %v; want %d", name, m.Time.UnixMilli(), err, c.want)
		}
	}
}

// Metadata without a version is older than the versions and means the same: it is read, and
// the next change of the agent writes the current version.
func TestMetadataWithoutAVersion(t *testing.T) {
	ctx, b := t.Context(), memory()
	s := b.store()
	state, blobs := stateOf(2)
	raw := marshal(state)
	if err := s.StorePrefetchedBlobs(ctx, append(blobs, wireBlob(string(raw)))...); err != nil {
		t.Fatal(err)
	}
	for name, version := range map[string][]byte{"absent": nil, "zero": varint(5, 0)} {
		id := blob.Sum(raw)
		value := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), id[:])
		value = append(append(value, varint(4, uint64(idle))...), version...)
		row := kv.Set{Key: keyspace.AgentMetadata(name), Value: []byte(base64.StdEncoding.EncodeToString(value))}
		if err := b.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{row}}); err != nil {
			t.Fatal(err)
		}
		if got := must[cloudagent.Agent](t)(s.Get(ctx, name)); got.State != id || got.Status != idle || got.Properties.NumTurns != 2 {
			t.Errorf("%s: agent is %+v", name, got)
		}
		if got := take(t, s, name, 1, &cloudagent.StreamOptions{MaxBlobsAfterPrefetch: -1}); describe(got[0]) != "initial 2 turns "+idle.String() {
			t.Errorf("%s: stream begins with %s", name, describe(got[0]))
		}
		must[cloudagent.Saved](t)(s.SaveState(ctx, name, state, blobs, nil))
		written, err := b.rows.Get(ctx, row.Key)
		if err != nil {
			t.Fatal(err)
		}
		current, err := cloudagent.EncodeMetadata(must[cloudagent.Metadata](t)(s.Metadata(ctx, name)))
		if err != nil || string(current) != string(written.Value) {
			t.Errorf("%s: the next change wrote %s, want %s", name, written.Value, current)
		}
	}
}

func TestMetadataThatIsNotUnderstoodIsNeverAbsent(t *testing.T) {
	ctx, b := t.Context(), memory()
	s := b.store()
	for name, c := range map[string]struct {
		value []byte
		want  error
	}{
		"newer":      {row(nil, varint(5, 2)), cloudagent.ErrMetadataVersion},
		"no base64":  {[]byte("***"), kv.ErrCorrupt},
		"no message": {[]byte("////"), kv.ErrCorrupt},
		"short id":   {[]byte(base64.StdEncoding.EncodeToString([]byte{0x0a, 1, 1, 0x28, 1})), kv.ErrCorrupt},
	} {
		if err := b.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: keyspace.AgentMetadata("a"), Value: c.value}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Metadata(ctx, "a"); !errors.Is(err, c.want) {
			t.Errorf("%s: Metadata gives %v, want %v", name, err, c.want)
		}
		if _, err := s.Get(ctx, "a"); !errors.Is(err, c.want) {
			t.Errorf("%s: Get gives %v, want %v", name, err, c.want)
		}
		if _, err := s.AppendUpdate(ctx, "a", nil, text("x")); !errors.Is(err, c.want) {
			t.Errorf("%s: AppendUpdate gives %v, want %v", name, err, c.want)
		}
		if _, err := s.Create(ctx, cloudagent.Spec{ID: "a"}); !errors.Is(err, cloudagent.ErrExists) {
			t.Errorf("%s: Create gives %v, want ErrExists", name, err)
		}
	}
}

// An imported agent has metadata and a state only. It can be read at once and
// goes on where it was.
func TestImportedAgentGoesOn(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		ctx, s := t.Context(), b.store()
		made := b.store()
		must[cloudagent.Agent](t)(made.Create(ctx, cloudagent.Spec{ID: "elsewhere"}))
		state, blobs := stateOf(2)
		saved := must[cloudagent.Saved](t)(made.SaveState(ctx, "elsewhere", state, blobs, nil))
		value, err := cloudagent.EncodeMetadata(cloudagent.Metadata{State: saved.State, OffsetKey: "0000000000000009-0", Time: time.UnixMilli(5), Status: idle})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: keyspace.AgentMetadata("bc:x"), Value: value}}}); err != nil {
			t.Fatal(err)
		}
		if p := must[cloudagent.Properties](t)(s.Properties(ctx, "bc:x")); p.NumTurns != 2 || p.AgentName != "Fixer" {
			t.Errorf("properties are %+v", p)
		}
		before := must[cloudagent.Agent](t)(b.store().Get(ctx, "bc:x")).Head
		got := take(t, s, "bc:x", 2, &cloudagent.StreamOptions{After: "0000000000000009-0"})
		if describe(got[0]) != "initial 2 turns "+idle.String() {
			t.Errorf("stream begins with %s", describe(got[0]))
		}
		must[cloudagent.Offset](t)(s.AppendUpdate(ctx, "bc:x", nil, text("more")))
		if got := take(t, s, "bc:x", 1, &cloudagent.StreamOptions{After: before.String()}); describe(got[0]) != "text more" {
			t.Errorf("stream goes on with %s", describe(got[0]))
		}
		state, blobs = stateOf(3)
		must[cloudagent.Saved](t)(s.SaveState(ctx, "bc:x", state, blobs, nil))
		if got := must[cloudagent.Agent](t)(s.Get(ctx, "bc:x")); got.Head.Seq != 2 || got.Properties.NumTurns != 3 || got.Status != idle {
			t.Errorf("agent is %+v", got)
		}
	})
}

func FuzzParseMetadata(f *testing.F) {
	f.Add([]byte(reference))
	f.Add(row(varint(3, 7), varint(5, 1)))
	f.Add(row(nil, varint(5, 9)))
	f.Add([]byte(" \n"))
	f.Fuzz(func(t *testing.T, value []byte) {
		m, err := cloudagent.ParseMetadata(value)
		if err != nil {
			if !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, cloudagent.ErrMetadataVersion) {
				t.Errorf("error of no kind: %v", err)
			}
			return
		}
		again, err := cloudagent.EncodeMetadata(m)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := cloudagent.ParseMetadata(again); err != nil || back != m {
			t.Errorf("%+v became %+v, %v", m, back, err)
		}
	})
}

func FuzzParseOffset(f *testing.F) {
	for _, s := range []string{"0000000000000009-0", "0000000000000001-ffffffffffffffff", "-", "0000000000000009-00", "+000000000000009-1", "0000000000000009-A"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := cloudagent.ParseOffset(s)
		if err != nil {
			if !errors.Is(err, cloudagent.ErrInvalidOffset) {
				t.Errorf("%q: error of no kind: %v", s, err)
			}
			return
		}
		if o.String() != s {
			t.Errorf("%q has a second spelling, %q", s, o)
		}
	})
}
