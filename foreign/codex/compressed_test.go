package codex_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/codex"
	"github.com/stet-dev/stet/foreign/foreigntest"
	"github.com/stet-dev/stet/foreign/intake"
	"github.com/stet-dev/stet/kv/memkv"
)

// compressedHome makes a home whose rollouts Codex has compressed.
func compressedHome(name string) func(t testing.TB) foreign.Host {
	return func(t testing.TB) foreign.Host {
		t.Helper()
		h := home(name)(t)
		foreigntest.Compress(t, h.Home, ".jsonl")
		return h
	}
}

func TestSuiteCompressed(t *testing.T) {
	foreigntest.Run(t, foreigntest.Config{
		Adapter: codex.New(), Home: compressedHome("plain"), Lines: true, Payloads: payloads(t),
		Sessions: plainSessions(),
	})
}

func TestSuiteForkedCompressed(t *testing.T) {
	foreigntest.Run(t, foreigntest.Config{Adapter: codex.New(), Home: compressedHome("forked"), Sessions: forkedSessions()})
}

// TestASessionThatIsCompressedLaterIsTheSame copies sessions while they are plain and again
// after Codex compressed them.
func TestASessionThatIsCompressedLaterIsTheSame(t *testing.T) {
	for _, name := range []string{"plain", "forked"} {
		h := home(name)(t)
		blobs := memblob.New()
		m := intake.New(blobs, memkv.New(blobs), codex.New())
		first, err := m.Sessions(ctx, codex.New().Sessions(ctx, h), nil)
		if err != nil || first.Turns == 0 || first.Damaged() > 0 {
			t.Fatalf("%s: %+v, %v", name, first, err)
		}
		foreigntest.Compress(t, h.Home, ".jsonl")
		again, err := m.Sessions(ctx, codex.New().Sessions(ctx, h), nil)
		if err != nil || again.Sessions != first.Sessions || again.Turns != 0 || again.Stored != 0 || len(again.Skipped) != 0 {
			t.Errorf("%s: the second import: %+v, %v", name, again, err)
		}
	}
}

// TestMarksOutliveCompression reads on from marks of the plain file, and finds a session by
// the path that it had.
func TestMarksOutliveCompression(t *testing.T) {
	h := home("plain")(t)
	s := find(t, h, mainID)
	turns, err := read(s, "")
	if err != nil {
		t.Fatal(err)
	}
	foreigntest.Compress(t, h.Home, ".jsonl")
	for i, turn := range turns {
		rest, err := read(s, turn.Mark)
		if err != nil || len(rest) != len(turns)-1-i {
			t.Errorf("from the mark of turn %d: %d turns, %v", i, len(rest), err)
		}
	}
	found := 0
	for at, err := range codex.New().SessionAt(ctx, h, s.Path) {
		if err != nil {
			t.Fatal(err)
		}
		if at.ID == mainID && strings.HasSuffix(at.Path, ".jsonl.zst") {
			found++
		}
	}
	if found != 1 {
		t.Errorf("the session is found %d times", found)
	}
}

// TestTheRawRecordOfACompressedSession is the text of the rollout, under its plain name.
func TestTheRawRecordOfACompressedSession(t *testing.T) {
	h := compressedHome("plain")(t)
	blobs := memblob.New()
	rows := memkv.New(blobs)
	s := find(t, h, mainID)
	if _, err := intake.New(blobs, rows, codex.New()).Session(ctx, s); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(filepath.Base(s.Path), ".zst")
	want, err := os.ReadFile(filepath.Join("testdata", "plain", "sessions", "2026", "11", "16", name))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := intake.WriteSource(ctx, blobs, rows, mainID, name, &got); err != nil || got.String() != string(want) {
		t.Errorf("%d of %d bytes, %v", got.Len(), len(want), err)
	}
}

// TestATruncatedFile: what is before the damage is kept, the rest is reported, and a whole
// file adds it later.
func TestATruncatedFile(t *testing.T) {
	whole, _ := read(find(t, home("plain")(t), mainID), "")
	h := compressedHome("plain")(t)
	s := find(t, h, mainID)
	data, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	blobs := memblob.New()
	m := intake.New(blobs, memkv.New(blobs), codex.New())
	for _, end := range []int{0, 3, len(data) / 2, len(data) - 1} {
		if err := os.WriteFile(s.Path, data[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		turns, err := read(s, "")
		if end > 0 && !foreign.Unreadable(err) || len(turns) > len(whole) {
			t.Errorf("%d of %d bytes: %d turns, %v", end, len(data), len(turns), err)
		}
		for i, turn := range turns[:max(0, len(turns)-1)] {
			if diff := cmp.Diff(whole[i].Steps, turn.Steps); diff != "" {
				t.Errorf("%d of %d bytes: turn %d:\n%s", end, len(data), i, diff)
			}
		}
		result, err := m.Session(ctx, s)
		if err != nil || end > 0 && len(result.Unreadable) == 0 {
			t.Errorf("%d of %d bytes: %+v, %v", end, len(data), result, err)
		}
	}
	if err := os.WriteFile(s.Path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if result, err := m.Session(ctx, s); err != nil || len(result.Unreadable) > 0 {
		t.Errorf("the whole file: %+v, %v", result, err)
	}
	again, err := m.Session(ctx, s)
	if err != nil || again.Turns+again.Grown != 0 || again.Bytes != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// TestACutOfACompressedSessionIsPlain: Codex reads what stet writes without unpacking it.
func TestACutOfACompressedSessionIsPlain(t *testing.T) {
	h := compressedHome("forked")(t)
	s := find(t, h, forkID)
	turns, err := read(s, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := codex.New().Cut(ctx, h, s, turns[0])
	if err != nil || len(c.Created) != 1 || !strings.HasSuffix(c.Created[0], c.Session+".jsonl") {
		t.Fatalf("%+v, %v", c, err)
	}
	data, err := os.ReadFile(c.Created[0])
	if err != nil || !strings.HasPrefix(string(data), "{") {
		t.Errorf("the cut begins with %.20q, %v", data, err)
	}
}

// TestAPlainFileIsPreferred: while Codex compresses a rollout both files are there.
func TestAPlainFileIsPreferred(t *testing.T) {
	h := compressedHome("plain")(t)
	if err := os.CopyFS(filepath.Join(h.Home, ".codex"), os.DirFS(filepath.Join("testdata", "plain"))); err != nil {
		t.Fatal(err)
	}
	if s := find(t, h, mainID); !strings.HasSuffix(s.Path, ".jsonl") {
		t.Errorf("the session is at %s", s.Path)
	}
	for f, err := range codex.New().Files(ctx, find(t, h, mainID)) {
		if err != nil || f.Open != nil {
			t.Errorf("%+v, %v", f, err)
		}
	}
}

// TestAFileThatIsNotCompressed has only the name of one that is.
func TestAFileThatIsNotCompressed(t *testing.T) {
	h := compressedHome("plain")(t)
	s := find(t, h, mainID)
	if err := os.WriteFile(s.Path, []byte(meta+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if turns, err := read(s, ""); !foreign.Unreadable(err) || len(turns) != 0 || errors.Is(err, io.EOF) {
		t.Errorf("%d turns, %v", len(turns), err)
	}
}
