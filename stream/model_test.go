package stream_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/stream"
)

// model is what streams must do, without rows: contents in memory.
type model map[string]*modelStream

type modelStream struct {
	appends   []string
	ends      []stream.Offset // of all appends, after the beginning
	closed    bool
	closedBy  stream.Producer
	seq       string
	producers map[string]stream.Producer
	source    *modelStream
	forks     int
	gone      bool
}

func (m *modelStream) tail() stream.Offset {
	if len(m.ends) == 0 {
		return stream.Offset{}
	}
	return m.ends[len(m.ends)-1]
}

func (m *modelStream) add(data string) {
	if data == "" {
		return
	}
	t := m.tail()
	m.appends = append(m.appends, data)
	m.ends = append(m.ends, stream.Offset{Seq: t.Seq + 1, Bytes: t.Bytes + uint64(len(data))})
}

// append returns the error that an append must give, and whether it is a repetition.
func (m *modelStream) append(a stream.Append) (error, bool) {
	p := a.Producer
	switch {
	case m.closed && p == nil && len(a.Data) == 0:
		return nil, false
	case m.closed && p != nil && *p == m.closedBy:
		return nil, true
	case m.closed:
		return stream.ErrClosed, false
	}
	if p != nil {
		last, known := m.producers[p.ID]
		switch {
		case !known && p.Seq != 0:
			return stream.ErrGap, false
		case known && p.Epoch < last.Epoch:
			return stream.ErrFenced, false
		case known && p.Epoch > last.Epoch && p.Seq != 0:
			return stream.ErrInvalid, false
		case known && p.Epoch == last.Epoch && p.Seq <= last.Seq:
			return nil, true
		case known && p.Epoch == last.Epoch && p.Seq > last.Seq+1:
			return stream.ErrGap, false
		}
	}
	if a.Seq != "" && a.Seq <= m.seq {
		return stream.ErrSeq, false
	}
	if a.Seq != "" {
		m.seq = a.Seq
	}
	if p != nil {
		m.producers[p.ID] = *p
	}
	m.add(string(a.Data))
	if m.closed = a.Close; a.Close && p != nil {
		m.closedBy = *p
	}
	return nil, false
}

func (m model) delete(path string) error {
	s := m[path]
	switch {
	case s == nil:
		return stream.ErrNotFound
	case s.gone:
		return stream.ErrGone
	case s.forks > 0:
		s.gone = true
		return nil
	}
	for s != nil {
		for path, other := range m {
			if other == s {
				delete(m, path)
			}
		}
		src := s.source
		if src == nil {
			break
		}
		if src.forks--; src.forks > 0 || !src.gone {
			break
		}
		s = src
	}
	return nil
}

func (m model) create(path string, f *stream.Fork, data string) (error, bool) {
	if s := m[path]; s != nil {
		if s.gone {
			return stream.ErrGone, false
		}
		return stream.ErrExists, false // the test never repeats a creation
	}
	n := &modelStream{producers: make(map[string]stream.Producer)}
	if f != nil {
		src := m[f.Source]
		switch {
		case src == nil:
			return stream.ErrNotFound, false
		case src.gone:
			return stream.ErrGone, false
		}
		at := int(f.At.Seq)
		if f.Sub > 0 && (at == len(src.appends) || int(f.Sub) > len(src.appends[at])) {
			return stream.ErrInvalid, false
		}
		for _, a := range src.appends[:at] {
			n.add(a)
		}
		if f.Sub > 0 {
			n.add(src.appends[at][:f.Sub])
		}
		n.source = src
		src.forks++
	}
	n.add(data)
	m[path] = n
	return nil, true
}

// Random histories of a few streams have the results that the model has.
func TestStreamsDoWhatTheModelDoes(t *testing.T) {
	paths := []string{"a", "b", "a/b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		b, m := newBench(), model{}
		ctx := t.Context()
		check := func(what string, got, want error) {
			if want == nil && got != nil || want != nil && !errors.Is(got, want) {
				t.Fatalf("%s: %v, want %v", what, got, want)
			}
		}
		path := func() string { return rapid.SampledFrom(paths).Draw(t, "path") }
		data := func() string { return strings.Repeat("x", rapid.IntRange(0, 4).Draw(t, "size")) + "." }
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				to, content := path(), data()
				var f *stream.Fork
				if rapid.Bool().Draw(t, "fork") {
					f = &stream.Fork{Source: path(), At: &stream.Offset{}, Sub: uint64(rapid.IntRange(0, 3).Draw(t, "sub"))}
					if src := m[f.Source]; src != nil && len(src.ends) > 0 && rapid.Bool().Draw(t, "later") {
						*f.At = rapid.SampledFrom(src.ends).Draw(t, "at")
					}
				}
				n++ // another type each time, so that nothing exists with the same configuration
				kind := fmt.Sprintf("text/%d", n)
				if f != nil {
					kind = ""
					if s := m[to]; s != nil && !s.gone {
						t.Skip() // a fork may be the same one again
					}
				}
				want, created := m.create(to, f, content)
				_, got, err := b.Create(ctx, to, stream.Config{ContentType: kind, Fork: f}, []byte(content))
				if check("create "+to, err, want); got != created {
					t.Fatalf("created %v, want %v", got, created)
				}
			},
			"append": func(t *rapid.T) {
				to := path()
				a := stream.Append{Data: []byte(data()), Close: rapid.IntRange(0, 9).Draw(t, "close") == 0}
				if a.Close && rapid.Bool().Draw(t, "empty") {
					a.Data = nil
				}
				if rapid.Bool().Draw(t, "produced") {
					a.Producer = &stream.Producer{
						ID:    rapid.SampledFrom([]string{"p", "q"}).Draw(t, "producer"),
						Epoch: uint64(rapid.IntRange(0, 2).Draw(t, "epoch")), Seq: uint64(rapid.IntRange(0, 3).Draw(t, "number")),
					}
				}
				a.Seq = rapid.SampledFrom([]string{"", "", "1", "10", "2", "3"}).Draw(t, "seq")
				info, err := b.Info(ctx, to)
				a.ContentType = info.ContentType
				if err != nil {
					a.ContentType = text
				}
				want, again := error(nil), false
				switch s := m[to]; {
				case s == nil:
					want = stream.ErrNotFound
				case s.gone:
					want = stream.ErrGone
				default:
					want, again = s.append(a)
				}
				done, err := b.Append(ctx, to, a)
				if check("append to "+to, err, want); err == nil && (done.Duplicate != again || done.Tail != m[to].tail()) {
					t.Fatalf("appended %+v; again %v, tail %s", done, again, m[to].tail())
				}
			},
			"delete": func(t *rapid.T) {
				at := path()
				want := m.delete(at)
				check("delete "+at, b.Delete(ctx, at), want)
			},
			"": func(t *rapid.T) {
				for _, path := range paths {
					s := m[path]
					var want error
					switch {
					case s == nil:
						want = stream.ErrNotFound
					case s.gone:
						want = stream.ErrGone
					}
					var from stream.Offset
					var rest []string
					if want == nil {
						at := rapid.IntRange(0, len(s.ends)).Draw(t, "from")
						if rest = s.appends[at:]; at > 0 {
							from = s.ends[at-1]
						}
					}
					batch, err := b.Read(ctx, path, from, nil)
					if check("read "+path, err, want); err != nil {
						continue
					}
					if got := string(stream.Body(text, batch.Appends)); got != strings.Join(rest, "") || batch.Next != s.tail() || batch.Closed != s.closed {
						t.Fatalf("read %q up to %s, closed %v; want %q up to %s, %v", got, batch.Next, batch.Closed, rest, s.tail(), s.closed)
					}
				}
				if len(m) == 0 {
					for row := range b.rows.Scan(ctx, everything, noOptions) {
						t.Fatalf("without a stream there is row %q", row.Key)
					}
				}
			},
		})
	})
}
