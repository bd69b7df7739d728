package document_test

import (
	"bytes"
	"context"
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
	"github.com/stet-dev/stet/document"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

func open(now func() time.Time) (*document.Store, *memblob.Store, *memkv.Store) {
	blobs := memblob.New()
	rows := memkv.New(blobs)
	return document.Open(blobs, rows, &document.Options{Now: now}), blobs, rows
}

func set(name, content string) document.Change {
	return document.Change{Name: name, Set: &document.New{Data: []byte(content)}}
}

func commit(t *testing.T, s *document.Store, changes ...document.Change) []document.Document {
	t.Helper()
	docs, err := s.Commit(t.Context(), "c", document.Batch{Changes: changes})
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// contents returns the documents of a query as "name=content", and the first error.
func contents(ctx context.Context, s *document.Store, q document.Query) (all []string, err error) {
	for doc, e := range s.List(ctx, q) {
		if e != nil {
			if err == nil {
				err = e
			}
			continue
		}
		all = append(all, doc.Name+"="+string(doc.Data))
	}
	return all, err
}

// TestDocumentsAreLikeTheModel compares random calls with a map.
func TestDocumentsAreLikeTheModel(t *testing.T) {
	type entry struct{ content, version string }
	rapid.Check(t, func(t *rapid.T) {
		s, blobs, rows := open(nil)
		model := make(map[string]entry)
		used := make(map[string]bool)
		names := rapid.SampledFrom([]string{"a", "a/1", "a/1/x", "a/2", "a0", "b:1", "b%3A1", "ä", "z", "~"})
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				var b document.Batch
				want := maps.Clone(model)
				fails := false
				if rapid.IntRange(0, 5).Draw(t, "prefixes") == 0 {
					prefix := rapid.SampledFrom([]string{"", "a", "a/", "b:", "q"}).Draw(t, "prefix")
					b.DeletePrefixes = append(b.DeletePrefixes, prefix)
					maps.DeleteFunc(want, func(name string, _ entry) bool { return strings.HasPrefix(name, prefix) })
				}
				for _, name := range rapid.SliceOfNDistinct(names, 1, 4, rapid.ID).Draw(t, "names") {
					c := document.Change{Name: name}
					switch rapid.SampledFrom([]string{"any", "absent", "right", "wrong"}).Draw(t, "expect") {
					case "absent":
						c.Expect = document.Absent
						fails = fails || model[name].version != ""
					case "right":
						c.Expect = document.At(model[name].version)
					case "wrong":
						c.Expect = document.At("wrong")
						fails = true
					}
					switch rapid.SampledFrom([]string{"set", "delete", "check"}).Draw(t, "change") {
					case "set":
						content := strings.Repeat(rapid.StringN(0, 3, -1).Draw(t, "content"), rapid.SampledFrom([]int{1, 600}).Draw(t, "times"))
						c.Set = &document.New{Data: []byte(content), Type: "text/plain", Metadata: []byte(name)}
						want[name] = entry{content: content}
					case "delete":
						c.Delete = true
						delete(want, name)
					}
					b.Changes = append(b.Changes, c)
				}
				docs, err := s.Commit(context.Background(), "c", b)
				if fails != errors.Is(err, document.ErrConflict) || !fails && err != nil {
					t.Fatalf("commit of %+v: %v, want a conflict: %v", b, err, fails)
				}
				if fails {
					return
				}
				for _, doc := range docs {
					if used[doc.Version] {
						t.Fatalf("version %s is used twice", doc.Version)
					}
					used[doc.Version] = true
					want[doc.Name] = entry{want[doc.Name].content, doc.Version}
				}
				model = want
			},
			"collect": func(t *rapid.T) {
				live := make(map[blob.ID]bool)
				for root, err := range s.Roots(context.Background()) {
					if err != nil {
						t.Fatal(err)
					}
					live[root.ID] = true
				}
				generation, err := blobs.Begin(context.Background())
				if err == nil {
					_, err = blobs.Sweep(context.Background(), generation, blob.SweepOptions{Live: func(id blob.ID) bool { return live[id] }})
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			"list": func(t *rapid.T) {
				q := document.Query{
					Collection: "c", Reverse: rapid.Bool().Draw(t, "reverse"),
					Prefix: rapid.SampledFrom([]string{"", "a", "a/", "b%", "q"}).Draw(t, "prefix"),
					After:  rapid.SampledFrom([]string{"", "a", "a/1", "a/9", "b", "zz"}).Draw(t, "after"),
				}
				var want []string
				for _, name := range slices.Sorted(maps.Keys(model)) {
					after := q.After == "" || name > q.After
					if q.Reverse && q.After != "" {
						after = name < q.After
					}
					if strings.HasPrefix(name, q.Prefix) && after {
						want = append(want, name+"="+model[name].content)
					}
				}
				if q.Reverse {
					slices.Reverse(want)
				}
				if got, err := contents(context.Background(), s, q); err != nil || !slices.Equal(got, want) {
					t.Fatalf("list %+v: %q, %v, want %q", q, got, err, want)
				}
			},
			"": func(t *rapid.T) { // after each call
				for name, want := range model {
					docs, err := s.Get(context.Background(), "c", name, "nosuch")
					if err != nil || len(docs) != 1 {
						t.Fatalf("%q: %v, %v", name, docs, err)
					}
					doc := docs[0]
					if string(doc.Data) != want.content || doc.Version != want.version || doc.Size != int64(len(want.content)) || doc.Type != "text/plain" || string(doc.Metadata) != name {
						t.Fatalf("%q: %+v, want %+v", name, doc, want)
					}
				}
				if other, err := contents(context.Background(), s, document.Query{Collection: "c:"}); err != nil || len(other) > 0 {
					t.Fatalf("another collection has %q, %v", other, err)
				}
			},
		})
		_ = rows
	})
}

// Writers that expect what they read lose nothing, and those that expect nothing succeed.
func TestManyWriters(t *testing.T) {
	s, _, _ := open(nil)
	const writers, times = 8, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range times {
				if _, err := s.Commit(t.Context(), "c", document.Batch{Changes: []document.Change{set("last", fmt.Sprint(w, i))}}); err != nil {
					t.Error(err)
				}
				for {
					docs, err := s.Get(t.Context(), "c", "count")
					c := document.Change{Name: "count", Set: &document.New{Data: []byte("x")}, Expect: document.Absent}
					if err == nil && len(docs) > 0 {
						c.Expect, c.Set.Data = document.At(docs[0].Version), append(docs[0].Data, 'x')
					}
					if err == nil {
						_, err = s.Commit(t.Context(), "c", document.Batch{Changes: []document.Change{c}})
					}
					if err == nil {
						break
					}
					if !errors.Is(err, document.ErrConflict) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	docs, err := s.Get(t.Context(), "c", "count")
	if err != nil || len(docs) != 1 || docs[0].Size != writers*times {
		t.Errorf("%v, %v", docs, err)
	}
}

// The time of a document never goes back, though the clock does.
func TestTimesDoNotGoBack(t *testing.T) {
	now := time.UnixMilli(5000)
	s, _, _ := open(func() time.Time { return now })
	commit(t, s, set("a", "1"))
	now = time.UnixMilli(3000)
	if doc := commit(t, s, set("a", "2"))[0]; doc.Changed.UnixMilli() != 5000 {
		t.Errorf("changed at %d", doc.Changed.UnixMilli())
	}
}

func TestBadDocuments(t *testing.T) {
	s, _, _ := open(nil)
	long := strings.Repeat("x", document.MaxName+1)
	many := make([]document.Change, document.MaxChanges+1)
	for i := range many {
		many[i] = set(fmt.Sprint(i), "")
	}
	for name, b := range map[string]document.Batch{
		"an empty name":      {Changes: []document.Change{set("", "x")}},
		"a long name":        {Changes: []document.Change{set(long, "x")}},
		"not UTF-8":          {Changes: []document.Change{set("\xff", "x")}},
		"a control":          {Changes: []document.Change{set("a\nb", "x")}},
		"twice":              {Changes: []document.Change{set("a", "x"), {Name: "a", Delete: true}}},
		"set and delete":     {Changes: []document.Change{{Name: "a", Delete: true, Set: &document.New{}}}},
		"much metadata":      {Changes: []document.Change{{Name: "a", Set: &document.New{Metadata: make([]byte, document.MaxMetadata+1)}}}},
		"a long type":        {Changes: []document.Change{{Name: "a", Set: &document.New{Type: long}}}},
		"a type not UTF-8":   {Changes: []document.Change{{Name: "a", Set: &document.New{Type: "\xff"}}}},
		"a negative size":    {Changes: []document.Change{{Name: "a", Set: &document.New{Size: -1}}}},
		"too many":           {Changes: many},
		"a bad prefix":       {DeletePrefixes: []string{"a\x00"}},
		"too many prefixes":  {DeletePrefixes: make([]string, 101)},
		"good and bad names": {Changes: []document.Change{set("good", "x"), set("", "x")}},
	} {
		if _, err := s.Commit(t.Context(), "c", b); !errors.Is(err, document.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Commit(t.Context(), "", document.Batch{}); !errors.Is(err, document.ErrInvalid) {
		t.Errorf("no collection: %v", err)
	}
	if _, err := s.Get(t.Context(), "c", ""); !errors.Is(err, document.ErrInvalid) {
		t.Errorf("get without a name: %v", err)
	}
	missing := document.Batch{Changes: []document.Change{set("good", "x"), {Name: "a", Set: &document.New{Blob: blob.Sum([]byte("nowhere"))}}}}
	if _, err := s.Commit(t.Context(), "c", missing); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a blob that does not exist: %v", err)
	}
	if all, err := contents(t.Context(), s, document.Query{Collection: "c"}); err != nil || len(all) > 0 {
		t.Errorf("after errors there is %q, %v", all, err)
	}
}

// A content that was put as a blob has its size, and a reader with little memory gets
// large contents as blobs.
func TestLargeContents(t *testing.T) {
	s, blobs, _ := open(nil)
	large := blob.New(bytes.Repeat([]byte("large"), 1000))
	if err := blobs.Put(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	commit(t, s, document.Change{Name: "a", Set: &document.New{Blob: large.ID}}, set("b", strings.Repeat("b", 900)), set("c", "small"))
	docs, err := s.Limited(1000).Get(t.Context(), "c", "a", "b", "c")
	if err != nil || docs[0].Data != nil || docs[0].Blob != large.ID || docs[0].Size != 5000 || len(docs[1].Data) != 900 || string(docs[2].Data) != "small" {
		t.Errorf("limited: %v, %v", docs, err)
	}
	if docs, err = s.Get(t.Context(), "c", "a"); err != nil || !bytes.Equal(docs[0].Data, large.Data) {
		t.Errorf("%v, %v", docs, err)
	}
	for doc, err := range s.List(t.Context(), document.Query{Collection: "c", NamesOnly: true}) {
		if err != nil || doc.Data != nil || doc.Size == 0 {
			t.Errorf("names only: %v, %v", doc, err)
		}
	}
}

// A damaged row is reported and keeps no other from being read. A change without an
// expectation replaces it.
func TestDamagedDocuments(t *testing.T) {
	s, blobs, rows := open(nil)
	commit(t, s, set("a", "1"), set("b", "2"), set("d", strings.Repeat("lost", 200)))
	damage := &kv.Batch{Set: []kv.Set{{Key: "stet:document:c:b", Value: []byte("\xff")}, {Key: "stet:document:c:c\n", Value: []byte("x")}}}
	if err := rows.Commit(t.Context(), damage); err != nil {
		t.Fatal(err)
	}
	generation, err := blobs.Begin(t.Context())
	if err == nil {
		_, err = blobs.Sweep(t.Context(), generation, blob.SweepOptions{Live: func(blob.ID) bool { return false }})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "c", "b"); !kv.Damaged(err) {
		t.Errorf("get of a damaged row: %v", err)
	}
	if _, err := s.Get(t.Context(), "c", "d"); !errors.Is(err, document.ErrDataLoss) {
		t.Errorf("get of a lost content: %v", err)
	}
	if all, err := contents(t.Context(), s, document.Query{Collection: "c"}); !kv.Damaged(err) || !slices.Equal(all, []string{"a=1"}) {
		t.Errorf("list: %q, %v", all, err)
	}
	if _, err := s.Commit(t.Context(), "c", document.Batch{Changes: []document.Change{{Name: "b", Expect: document.Absent, Delete: true}}}); !kv.Damaged(err) {
		t.Errorf("an expectation about a damaged row: %v", err)
	}
	commit(t, s, set("b", "again"), document.Change{Name: "d", Delete: true})
	if docs, err := s.Get(t.Context(), "c", "b", "d"); err != nil || len(docs) != 1 || string(docs[0].Data) != "again" {
		t.Errorf("%v, %v", docs, err)
	}
}

func TestCollections(t *testing.T) {
	s, _, _ := open(nil)
	for _, name := range []string{"b", "a", "a:b", "c"} {
		if _, err := s.Commit(t.Context(), name, document.Batch{Changes: []document.Change{set("x", "1"), set("y", "2")}}); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := s.Collections(t.Context(), "", 10); err != nil || !slices.Equal(all, []string{"a:b", "a", "b", "c"}) {
		t.Errorf("%q, %v", all, err)
	}
	if all, err := s.Collections(t.Context(), "a", 1); err != nil || !slices.Equal(all, []string{"b"}) {
		t.Errorf("%q, %v", all, err)
	}
}
