package foreigntest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/foreign"
)

// unknown is a line of a type that no agent uses.
const unknown = `{"type":"not-known-to-any-reader","value":{"a":[1,2,3]}}` + "\n"

// growth reads each session while it grows line by line, as an intake does.
func (c Config) growth(t *testing.T) {
	h := c.Home(t)
	for _, s := range c.list(t, h) {
		whole := c.read(t, s, "")
		data := load(t, s.Path)
		var have []foreign.Turn
		for end := range lineEnds(data) {
			save(t, s.Path, data[:end])
			have = c.grow(t, s, have)
		}
		if diff := cmp.Diff(whole, have, sameTurn...); diff != "" {
			t.Errorf("session %s: read piece by piece:\n%s", s.ID, diff)
		}
		if got := c.read(t, s, mark(have)); len(got) > 0 && got[0].Done {
			t.Errorf("session %s: %d turns are new, and nothing was written", s.ID, len(got))
		}
	}
}

// grow reads what is new after the last turn.
func (c Config) grow(t *testing.T, s foreign.Session, have []foreign.Turn) []foreign.Turn {
	t.Helper()
	news, err := c.collect(s, mark(have))
	if errors.Is(err, foreign.ErrMark) {
		return c.read(t, s, "")
	}
	if err != nil {
		t.Fatalf("session %s: %v", s.ID, err)
	}
	for _, turn := range news {
		if n := len(have); n > 0 && have[n-1].ID == turn.ID {
			if have[n-1].Done {
				t.Errorf("session %s: turn %s was done and comes again", s.ID, turn.ID)
			}
			have = have[:n-1]
		}
		have = append(have, turn)
	}
	return have
}

func mark(turns []foreign.Turn) foreign.Mark {
	if len(turns) == 0 {
		return ""
	}
	return turns[len(turns)-1].Mark
}

// torn cuts the last line at several bytes.
func (c Config) torn(t *testing.T) {
	h := c.Home(t)
	for _, s := range c.list(t, h) {
		data := load(t, s.Path)
		last := bytes.LastIndexByte(bytes.TrimRight(data, "\n"), '\n') + 1
		save(t, s.Path, data[:last])
		want := c.read(t, s, "")
		for _, part := range []int{1, 2, (len(data) - last) / 2, len(data) - last - 2} {
			save(t, s.Path, data[:last+max(1, part)])
			if diff := cmp.Diff(want, c.read(t, s, ""), sameTurn...); diff != "" {
				t.Errorf("session %s: %d bytes of the last line change what is read:\n%s", s.ID, part, diff)
			}
		}
	}
}

// damage puts unreadable and meaningless lines between the lines of a session.
func (c Config) damage(t *testing.T) {
	for _, bad := range []struct {
		name, line string
		reported   bool
	}{
		{"unknown type", unknown, false},
		{"empty lines", "\n\r\n\n", false},
		{"garbage", "\x00\xff{]garbage\n", true},
		{"half a line", `{"type":"user","message":{"role":` + "\n", true},
		{"a text of 9 MB", `{"type":"not-known-to-any-reader","a":"` + strings.Repeat("x", 9<<20) + "\"}\n", false},
		{"9 MB of numbers", `{"type":"not-known-to-any-reader","a":[0` + strings.Repeat(",1", 9<<19) + "]}\n", true},
	} {
		t.Run(bad.name, func(t *testing.T) {
			h := c.Home(t)
			for _, s := range c.list(t, h) {
				c.damaged(t, s, bad.line, bad.reported)
			}
		})
	}
}

func (c Config) damaged(t *testing.T, s foreign.Session, bad string, reported bool) {
	want := c.read(t, s, "")
	data := load(t, s.Path)
	ends := slices.Collect(lineEnds(data))
	at := ends[len(ends)/2]
	save(t, s.Path, slices.Concat(data[:at], []byte(bad), data[at:]))
	var got []foreign.Turn
	errs := 0
	for turn, err := range c.Adapter.Turns(context.Background(), s, "") {
		switch {
		case foreign.Unreadable(err):
			errs++
		case err != nil:
			t.Fatalf("session %s: %v", s.ID, err)
		default:
			got = append(got, turn)
		}
	}
	if reported != (errs > 0) {
		t.Errorf("session %s: %d errors", s.ID, errs)
	}
	if len(got) != len(want) {
		t.Fatalf("session %s: %d turns, want %d", s.ID, len(got), len(want))
	}
	for i := range got {
		if got[i].ID != want[i].ID || got[i].Prompt != want[i].Prompt || len(got[i].Steps) != len(want[i].Steps) {
			t.Errorf("session %s: turn %d is %s with %d steps, want %s with %d", s.ID, i, got[i].ID, len(got[i].Steps), want[i].ID, len(want[i].Steps))
		}
	}
}

// memory reads a session of some ten megabytes and looks at what stays alive.
func (c Config) memory(t *testing.T) {
	const lines, limit = 48, 24 << 20
	h := c.Home(t)
	for _, s := range c.list(t, h) {
		data := load(t, s.Path)
		ends := slices.Collect(lineEnds(data))
		at := ends[len(ends)/2]
		pad := []byte(`{"type":"not-known-to-any-reader","a":"` + strings.Repeat("x", 1<<20) + "\"}\n")
		write(t, s.Path, slices.Concat([][]byte{data[:at]}, slices.Repeat([][]byte{pad}, lines), [][]byte{data[at:]})...)
		before, most := alive(), uint64(0)
		for _, err := range c.Adapter.Turns(context.Background(), s, "") {
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, alive())
		}
		if most > before+limit {
			t.Errorf("session %s: %d bytes are kept while it is read", s.ID, most-before)
		}
		save(t, s.Path, data)
	}
}

// alive counts the bytes that are in use.
func alive() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// gone reads a session whose file was deleted, and one that was replaced by less.
func (c Config) gone(t *testing.T) {
	h := c.Home(t)
	for _, s := range c.list(t, h) {
		turns := c.read(t, s, "")
		save(t, s.Path, []byte(unknown))
		if last := turns[len(turns)-1]; last.Done {
			if got, err := c.collect(s, last.Mark); !errors.Is(err, foreign.ErrMark) || len(got) > 0 {
				t.Errorf("session %s: a mark behind the end gives %d turns, %v", s.ID, len(got), err)
			}
		}
		if err := os.Remove(s.Path); err != nil {
			t.Fatal(err)
		}
		if got, err := c.collect(s, ""); !foreign.Unreadable(err) || len(got) > 0 {
			t.Errorf("session %s without its file: %d turns, %v", s.ID, len(got), err)
		}
	}
}

// lineEnds returns the ends of the lines of a file.
func lineEnds(data []byte) func(func(int) bool) {
	return func(yield func(int) bool) {
		for at := 0; at < len(data); {
			next := bytes.IndexByte(data[at:], '\n')
			if next < 0 {
				yield(len(data))
				return
			}
			if at += next + 1; !yield(at) {
				return
			}
		}
	}
}
