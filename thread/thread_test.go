package thread_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/thread"
)

func open(t testing.TB) (*thread.Store, blob.Store, kv.Store) {
	t.Helper()
	blobs := memblob.New()
	rows := memkv.New(blobs)
	now := func() time.Time { return time.UnixMilli(1_700_000_000_000) }
	return thread.New(blobs, rows, &thread.Options{Now: now}), blobs, rows
}

func text(s string) thread.Value { return thread.Value{Type: "json", Data: []byte(s)} }

// shown is a frame as a text, for comparisons.
func shown(f thread.Frame) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s after %q %s body %s", f.Key, f.Parent, f.Metadata, f.Body.Data)
	for _, name := range slices.Sorted(maps.Keys(f.Channels)) {
		fmt.Fprintf(&b, " %s@%s=%s/%s", name, f.Channels[name].Version, f.Channels[name].Type, f.Channels[name].Data)
	}
	for _, w := range f.Writes {
		fmt.Fprintf(&b, " [%s %s %d %s=%s]", w.Task, w.Path, w.Index, w.Channel, w.Data)
	}
	return b.String()
}

func all(t testing.TB, s *thread.Store, q thread.Query) []string {
	t.Helper()
	var out []string
	for f, err := range s.List(context.Background(), q) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, shown(f))
	}
	return out
}

// A frame keeps the values of its parent at the same version, and nothing else.
func TestValuesOfTheParent(t *testing.T) {
	s, _, _ := open(t)
	ctx := t.Context()
	long := strings.Repeat("x", 1000)
	put := func(f thread.NewFrame) {
		t.Helper()
		if err := s.Put(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	key := func(id string) thread.Key { return thread.Key{Thread: "t", ID: id} }
	put(thread.NewFrame{Key: key("1"), Body: text("b1"), Versions: map[string]string{"a": "1", "b": "1", "none": "1"},
		Values: map[string]thread.Value{"a": text(long), "b": text("short")}})
	put(thread.NewFrame{Key: key("2"), Parent: "1", Body: text("b2"), Versions: map[string]string{"a": "1", "b": "2"},
		Values: map[string]thread.Value{"b": text("other")}})
	put(thread.NewFrame{Key: key("3"), Parent: "2", Body: text("b3"), Versions: map[string]string{"a": "2", "b": "2"}})
	put(thread.NewFrame{Key: key("4"), Parent: "gone", Body: text("b4"), Versions: map[string]string{"a": "1"}})
	for id, want := range map[string]string{
		"1": "a@1=json/" + long + " b@1=json/short",
		"2": "a@1=json/" + long + " b@2=json/other",
		"3": "b@2=json/other",
		"4": "body b4",
	} {
		f, err := s.Get(ctx, key(id))
		if err != nil || !strings.HasSuffix(shown(f), want) {
			t.Errorf("frame %s: %s, %v; want %s", id, shown(f), err, want)
		}
	}
	if f, err := s.Get(ctx, thread.Key{Thread: "t"}); err != nil || f.ID != "4" {
		t.Errorf("the latest is %s, %v", f.Key, err)
	}
}

// A task that is repeated writes nothing twice; its special writes are replaced.
func TestWritesOfARepeatedTask(t *testing.T) {
	s, _, _ := open(t)
	ctx := t.Context()
	key := thread.Key{Thread: "t", Namespace: "inner|1", ID: "1"}
	for _, round := range []string{"first", "second"} {
		err := s.PutWrites(ctx, key, "task", "~1", []thread.Write{
			{Index: 0, Channel: "a", Value: text(round)}, {Index: 1, Channel: "b", Value: text(round)}, {Index: -1, Channel: "error", Value: text(round)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(ctx, thread.NewFrame{Key: key}); err != nil {
		t.Fatal(err)
	}
	f, err := s.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	want := "[task ~1 -1 error=second] [task ~1 0 a=first] [task ~1 1 b=first]"
	if got := shown(f); !strings.HasSuffix(got, want) {
		t.Errorf("%s; want %s", got, want)
	}
}

// Of two writes of one index in one call the first one counts, as of two in two calls.
func TestWritesOfOneIndex(t *testing.T) {
	s, _, _ := open(t)
	ctx := t.Context()
	key := thread.Key{Thread: "t", Namespace: "inner|1", ID: "1"}
	err := s.PutWrites(ctx, key, "task", "~1", []thread.Write{
		{Index: 0, Channel: "a", Value: text("first")}, {Index: 0, Channel: "a", Value: text("second")},
		{Index: -1, Channel: "error", Value: text("first")}, {Index: -1, Channel: "error", Value: text("second")},
	})
	if err == nil {
		err = s.Put(ctx, thread.NewFrame{Key: key})
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	want := "[task ~1 -1 error=second] [task ~1 0 a=first]"
	if got := shown(f); !strings.HasSuffix(got, want) {
		t.Errorf("%s; want %s", got, want)
	}
}

// Of two tasks of one name that write at once, one is stored as a whole.
func TestWritesAtOnce(t *testing.T) {
	s, _, _ := open(t)
	key := thread.Key{Thread: "t", ID: "1"}
	var wg sync.WaitGroup
	for _, who := range []string{"one", "other", "third"} {
		wg.Go(func() {
			var writes []thread.Write
			for i := range int32(5) {
				writes = append(writes, thread.Write{Index: i, Channel: "c", Value: text(who)})
			}
			if err := s.PutWrites(t.Context(), key, "task", "", writes); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := s.Put(t.Context(), thread.NewFrame{Key: key}); err != nil {
		t.Fatal(err)
	}
	f, err := s.Get(t.Context(), key)
	if err != nil || len(f.Writes) != 5 {
		t.Fatalf("%d writes, %v", len(f.Writes), err)
	}
	for _, w := range f.Writes {
		if string(w.Data) != string(f.Writes[0].Data) {
			t.Errorf("writes of %s and %s are mixed", w.Data, f.Writes[0].Data)
		}
	}
}

func TestBadFrames(t *testing.T) {
	s, _, rows := open(t)
	ctx := t.Context()
	good := thread.Key{Thread: "t", ID: "1"}
	for name, f := range map[string]thread.NewFrame{
		"no thread":         {Key: thread.Key{ID: "1"}},
		"no id":             {Key: thread.Key{Thread: "t"}},
		"control character": {Key: thread.Key{Thread: "t\n", ID: "1"}},
		"long id":           {Key: thread.Key{Thread: "t", ID: strings.Repeat("1", 300)}},
		"own parent":        {Key: good, Parent: "1"},
		"no version":        {Key: good, Values: map[string]thread.Value{"a": text("1")}},
		"metadata":          {Key: good, Metadata: []byte("[1]")},
		"much metadata":     {Key: good, Metadata: []byte(`{"a": "` + strings.Repeat("x", 70_000) + `"}`)},
	} {
		if err := s.Put(ctx, f); !errors.Is(err, thread.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	missing := thread.NewFrame{Key: good, Body: thread.Value{Type: "json", Blob: blob.Sum([]byte("not stored"))}}
	if err := s.Put(ctx, missing); err == nil {
		t.Error("a frame with a missing blob was stored")
	}
	if err := s.PutWrites(ctx, good, "", "", nil); !errors.Is(err, thread.ErrInvalid) {
		t.Errorf("a write without a task: %v", err)
	}
	for _, err := range s.List(ctx, thread.Query{Filter: []byte("1")}) {
		if !errors.Is(err, thread.ErrInvalid) {
			t.Errorf("a filter that is not an object: %v", err)
		}
	}
	if _, err := s.Copy(ctx, "t", "t"); !errors.Is(err, thread.ErrInvalid) {
		t.Errorf("a copy to itself: %v", err)
	}
	for row, err := range rows.Scan(ctx, kv.Range{}, kv.ScanOptions{}) {
		t.Errorf("stored: %s, %v", row.Key, err)
	}
	if _, err := s.Get(ctx, good); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("a missing frame: %v", err)
	}
	if _, err := s.Get(ctx, thread.Key{Thread: "t"}); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("the latest of an empty thread: %v", err)
	}
}

// A filter finds equal values however they are written. It is not longer than metadata,
// and read once, because a list can have many frames.
func TestFilters(t *testing.T) {
	s, _, _ := open(t)
	for id, metadata := range map[string]string{"1": `{"a":{"x":1,"y":"é"},"n":12345678901234567890}`, "2": `{"a":{"x":1},"n":1}`, "3": `{}`} {
		if err := s.Put(t.Context(), thread.NewFrame{Key: thread.Key{Thread: "t", ID: id}, Metadata: []byte(metadata)}); err != nil {
			t.Fatal(err)
		}
	}
	for filter, want := range map[string]string{
		`{"a": {"y": "\u00e9", "x": 1}}`: "1", `{"a":{"x":1}}`: "2", `{"n": 12345678901234567890}`: "1", `{"n":12345678901234567891}`: "",
		`{"b":null}`: "", `{}`: "321", `null`: "321", "": "321",
	} {
		got := ""
		for f, err := range s.List(t.Context(), thread.Query{Filter: []byte(filter)}) {
			if err != nil {
				t.Fatal(err)
			}
			got += f.ID
		}
		if got != want {
			t.Errorf("%s finds %q, want %q", filter, got, want)
		}
	}
	var refused error
	for _, err := range s.List(t.Context(), thread.Query{Filter: []byte(`{"a":[` + strings.Repeat("1,", 32<<10) + `1]}`)}) {
		refused = err
	}
	if !errors.Is(refused, thread.ErrInvalid) || !strings.Contains(refused.Error(), "bytes of a filter; the limit is 65536") {
		t.Errorf("a filter that is too long: %v", refused)
	}
}

// A row whose key is not one of a write is reported as damage by a copy.
func TestCopyOfADamagedKey(t *testing.T) {
	s, _, rows := open(t)
	for _, key := range []string{"stet:frame-write:t:x", "stet:frame-write:t::1:task:zz", "stet:frame:t:x"} {
		if err := rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte("x")}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Copy(t.Context(), "t", "u"); !kv.Damaged(err) {
			t.Errorf("%s: %v", key, err)
		}
		if err := s.Delete(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
	}
}

// A reader with little memory gets large contents as blobs.
func TestLimitedReads(t *testing.T) {
	s, blobs, _ := open(t)
	ctx := t.Context()
	large := blob.New([]byte(strings.Repeat("put before", 100)))
	if err := blobs.Put(ctx, large); err != nil {
		t.Fatal(err)
	}
	key := thread.Key{Thread: "t", ID: "1"}
	err := s.Put(ctx, thread.NewFrame{
		Key: key, Body: text(strings.Repeat("b", 600)), Versions: map[string]string{"large": "1", "small": "1", "put": "1"},
		Values: map[string]thread.Value{"large": text(strings.Repeat("x", 5000)), "small": text("x"), "put": {Type: "json", Blob: large.ID}},
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Limited(1000).Get(ctx, key)
	if err != nil || len(f.Body.Data) != 600 || string(f.Channels["small"].Data) != "x" {
		t.Errorf("%s, %v", shown(f), err)
	}
	for _, name := range []string{"large", "put"} {
		if c := f.Channels[name]; c.Data != nil || c.Blob.IsZero() {
			t.Errorf("%s was read: %d bytes, blob %s", name, len(c.Data), c.Blob)
		}
	}
	if f, err = s.Get(ctx, key); err != nil || len(f.Channels["large"].Data) != 5000 || len(f.Channels["put"].Data) != 1000 {
		t.Errorf("without a limit: %s, %v", shown(f), err)
	}
}

// A damaged row or a lost value is reported under its frame; the others are listed.
func TestDamageStaysWhereItIs(t *testing.T) {
	s, _, rows := open(t)
	ctx := t.Context()
	for _, id := range []string{"1", "2", "3"} {
		if err := s.Put(ctx, thread.NewFrame{Key: thread.Key{Thread: "t", ID: id}, Body: text(strings.Repeat(id, 600))}); err != nil {
			t.Fatal(err)
		}
	}
	damaged := keyspace.Frame("t", "", "2")
	if err := rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: damaged, Value: []byte("\xff\xff")}}}); err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]thread.Query{"a namespace": {Thread: "t", Namespace: new(string)}, "all": {}} {
		var seen []string
		for f, err := range s.List(ctx, q) {
			if err != nil {
				seen = append(seen, "damaged "+f.ID)
				continue
			}
			seen = append(seen, f.ID)
		}
		if got := strings.Join(seen, ","); got != "3,damaged 2,1" {
			t.Errorf("%s: %s", name, got)
		}
	}
	var bad, good int
	for _, err := range s.Roots(ctx) {
		if err != nil {
			bad++
		} else {
			good++
		}
	}
	if bad != 1 || good != 2 {
		t.Errorf("%d roots, %d damaged", good, bad)
	}
	row, err := rows.Get(ctx, damaged)
	if err != nil {
		t.Fatal(err)
	}
	if err := thread.CheckRow(row); !kv.Damaged(err) {
		t.Errorf("the check of the row: %v", err)
	}
	lost := thread.New(memblob.New(), rows, nil)
	if _, err := lost.Get(ctx, thread.Key{Thread: "t", ID: "1"}); fault.Of(err) != fault.Damaged {
		t.Errorf("a lost value: %v", err)
	}
}

// model is what a store of threads must be, as simple as possible.
type model struct {
	frames map[thread.Key]thread.Frame
	writes map[thread.Key]map[string]thread.Write
}

func (m *model) frame(k thread.Key) thread.Frame {
	f := m.frames[k]
	f.Writes = nil
	for _, at := range slices.Sorted(maps.Keys(m.writes[k])) {
		f.Writes = append(f.Writes, m.writes[k][at])
	}
	return f
}

func (m *model) list(q thread.Query) []string {
	var keys []thread.Key
	var filter map[string]string
	if len(q.Filter) > 0 {
		if err := json.Unmarshal(q.Filter, &filter); err != nil {
			panic(err)
		}
	}
	for k, f := range m.frames {
		var metadata map[string]string
		if err := json.Unmarshal(f.Metadata, &metadata); err != nil {
			panic(err)
		}
		fits := true
		for name, want := range filter {
			fits = fits && metadata[name] == want
		}
		if fits && (q.Thread == "" || k.Thread == q.Thread) && (q.Namespace == nil || k.Namespace == *q.Namespace) && (q.Before == "" || k.ID < q.Before) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b thread.Key) int {
		return strings.Compare(b.ID+"\x00", a.ID+"\x00")*4 + strings.Compare(a.Thread, b.Thread)*2 + strings.Compare(a.Namespace, b.Namespace)
	})
	var out []string
	for _, k := range keys {
		out = append(out, shown(m.frame(k)))
	}
	return out
}

func TestThreadsAreLikeTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, _, _ := open(t)
		ctx := t.Context()
		m := &model{frames: make(map[thread.Key]thread.Frame), writes: make(map[thread.Key]map[string]thread.Write)}
		threads := rapid.SampledFrom([]string{"a", "a:b", "a%3Ab", "é"})
		namespaces := rapid.SampledFrom([]string{"", "child", "child:2|x"})
		ids := rapid.SampledFrom([]string{"1", "2", "3", "4", "5"})
		contents := rapid.SampledFrom([]string{"1", strings.Repeat("long ", 50), strings.Repeat("long ", 60) + "end", strings.Repeat("very long ", 90)})
		drawKey := func(rt *rapid.T) thread.Key {
			return thread.Key{Thread: threads.Draw(rt, "thread"), Namespace: namespaces.Draw(rt, "namespace"), ID: ids.Draw(rt, "id")}
		}
		must := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		drop := func(k thread.Key) { delete(m.frames, k); delete(m.writes, k) }
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				k := drawKey(rt)
				f := thread.NewFrame{Key: k, Metadata: []byte(`{"source": "` + ids.Draw(rt, "source") + `", "run_id": "` + ids.Draw(rt, "run") + `"}`), Body: text(contents.Draw(rt, "body")), Versions: map[string]string{}, Values: map[string]thread.Value{}}
				if p := ids.Draw(rt, "parent"); p != k.ID {
					f.Parent = p
				}
				parent := m.frames[thread.Key{Thread: k.Thread, Namespace: k.Namespace, ID: f.Parent}]
				want := thread.Frame{Key: k, Parent: f.Parent, Metadata: f.Metadata, Body: f.Body, Channels: map[string]thread.Channel{}}
				for _, name := range []string{"x", "y"} {
					version := ids.Draw(rt, "version")
					f.Versions[name] = version
					if rapid.Bool().Draw(rt, "new") {
						f.Values[name] = text(contents.Draw(rt, "value"))
						want.Channels[name] = thread.Channel{Version: version, Value: f.Values[name]}
					} else if old, ok := parent.Channels[name]; ok && old.Version == version {
						want.Channels[name] = old
					}
				}
				must(s.Put(ctx, f))
				m.frames[k] = want
			},
			"write": func(rt *rapid.T) {
				k := drawKey(rt)
				task := ids.Draw(rt, "task")
				w := thread.Write{Task: task, Path: "p", Index: rapid.Int32Range(-2, 2).Draw(rt, "index"), Channel: "x", Value: text(contents.Draw(rt, "value"))}
				must(s.PutWrites(ctx, k, task, "p", []thread.Write{w}))
				at := fmt.Sprintf("%s %02d", task, w.Index+10)
				if m.writes[k] == nil {
					m.writes[k] = make(map[string]thread.Write)
				}
				if _, ok := m.writes[k][at]; !ok || w.Index < 0 {
					m.writes[k][at] = w
				}
			},
			"delete": func(rt *rapid.T) {
				id := threads.Draw(rt, "thread")
				must(s.Delete(ctx, id))
				for _, of := range []thread.Key{{Thread: id}} {
					maps.DeleteFunc(m.frames, func(k thread.Key, _ thread.Frame) bool { return k.Thread == of.Thread })
					maps.DeleteFunc(m.writes, func(k thread.Key, _ map[string]thread.Write) bool { return k.Thread == of.Thread })
				}
			},
			"prune": func(rt *rapid.T) {
				id := threads.Draw(rt, "thread")
				_, err := s.Prune(ctx, id)
				must(err)
				latest := make(map[string]string)
				for k := range m.frames {
					if k.Thread == id {
						latest[k.Namespace] = max(latest[k.Namespace], k.ID)
					}
				}
				for k := range maps.Clone(m.frames) {
					if k.Thread == id && k.ID != latest[k.Namespace] {
						drop(k)
					}
				}
			},
			"delete runs": func(rt *rapid.T) {
				run := ids.Draw(rt, "run")
				_, err := s.DeleteRuns(ctx, []string{run})
				must(err)
				for k, f := range maps.Clone(m.frames) {
					if strings.Contains(string(f.Metadata), `"run_id": "`+run+`"`) {
						drop(k)
					}
				}
			},
			"copy": func(rt *rapid.T) {
				from, to := threads.Draw(rt, "from"), threads.Draw(rt, "to")
				if from == to {
					return
				}
				_, err := s.Copy(ctx, from, to)
				must(err)
				for k, f := range maps.Clone(m.frames) {
					if k.Thread == from {
						f.Thread = to
						m.frames[f.Key] = f
					}
				}
				for k, writes := range maps.Clone(m.writes) {
					if k.Thread == from {
						k.Thread = to
						if m.writes[k] == nil {
							m.writes[k] = make(map[string]thread.Write)
						}
						maps.Copy(m.writes[k], writes)
					}
				}
			},
			"": func(rt *rapid.T) {
				q := thread.Query{Thread: rapid.SampledFrom([]string{"", "a", "a:b"}).Draw(rt, "of"), Before: rapid.SampledFrom([]string{"", "4"}).Draw(rt, "before")}
				if rapid.Bool().Draw(rt, "one namespace") {
					q.Namespace = new(namespaces.Draw(rt, "namespace"))
				}
				if rapid.Bool().Draw(rt, "filtered") {
					q.Filter = []byte(`{"source": "2"}`)
				}
				if got, want := all(t, s, q), m.list(q); !slices.Equal(got, want) {
					rt.Fatalf("%+v\n got %s\nwant %s", q, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
				}
				ids := make(map[string]bool)
				for k := range m.frames {
					ids[k.Thread] = true
				}
				var listed []string
				for after := ""; ; after = listed[len(listed)-1] {
					some, err := s.Threads(ctx, after, 1)
					must(err)
					if len(some) == 0 {
						break
					}
					listed = append(listed, some...)
				}
				slices.Sort(listed)
				if !slices.Equal(listed, slices.Sorted(maps.Keys(ids))) {
					rt.Fatalf("threads %q, want %q", listed, slices.Sorted(maps.Keys(ids)))
				}
			},
		})
	})
}

// A list of several namespaces goes on where a window of keys ends, and after any frame.
func TestLongLists(t *testing.T) {
	s, _, _ := open(t)
	ctx := t.Context()
	const n = 700
	for i := range n {
		k := thread.Key{Thread: fmt.Sprint("t", i%3), Namespace: []string{"", "x"}[i%2], ID: fmt.Sprintf("%04d", i)}
		if err := s.Put(ctx, thread.NewFrame{Key: k}); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	var after thread.Key
	for { // in parts
		part := 0
		for f, err := range s.List(ctx, thread.Query{After: after}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, f.ID)
			after = f.Key
			if part++; part == 300 {
				break
			}
		}
		if part == 0 {
			break
		}
	}
	for i, id := range ids {
		if want := fmt.Sprintf("%04d", n-1-i); id != want {
			t.Fatalf("frame %d is %s, want %s", i, id, want)
		}
	}
	if len(ids) != n {
		t.Errorf("%d frames, want %d", len(ids), n)
	}
}
