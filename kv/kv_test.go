package kv_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

func TestRange(t *testing.T) {
	for _, c := range []struct {
		r        kv.Range
		key      string
		contains bool
		empty    bool
	}{
		{kv.Range{}, "a", true, false},
		{kv.Range{Start: "b"}, "a", false, false},
		{kv.Range{Start: "b"}, "b", true, false},
		{kv.Range{Start: "b", End: "c"}, "b\xff", true, false},
		{kv.Range{Start: "b", End: "c"}, "c", false, false},
		{kv.Range{Start: "b", End: "b"}, "b", false, true},
		{kv.Range{Start: "c", End: "b"}, "bb", false, true},
	} {
		if got := c.r.Contains(c.key); got != c.contains {
			t.Errorf("%+v contains %q: %v, want %v", c.r, c.key, got, c.contains)
		}
		if got := c.r.Empty(); got != c.empty {
			t.Errorf("%+v is empty: %v, want %v", c.r, got, c.empty)
		}
	}
}

func TestTouches(t *testing.T) {
	in := kv.Range{Start: "b", End: "d"}
	for name, c := range map[string]struct {
		b    kv.Batch
		want bool
	}{
		"nothing":                  {kv.Batch{Expect: []kv.Expect{{Key: "b"}}}, false},
		"set inside":               {kv.Batch{Set: []kv.Set{{Key: "a"}, {Key: "b"}}}, true},
		"set at the end":           {kv.Batch{Set: []kv.Set{{Key: "d"}}}, false},
		"delete inside":            {kv.Batch{Delete: []string{"c"}}, true},
		"delete before":            {kv.Batch{Delete: []string{"a"}}, false},
		"delete what ends there":   {kv.Batch{DeleteRange: []kv.Range{{Start: "a", End: "b"}}}, false},
		"delete what reaches in":   {kv.Batch{DeleteRange: []kv.Range{{Start: "a", End: "b\x00"}}}, true},
		"delete what begins there": {kv.Batch{DeleteRange: []kv.Range{{Start: "d"}}}, false},
		"delete everything":        {kv.Batch{DeleteRange: []kv.Range{{}}}, true},
	} {
		if got := c.b.Touches(in); got != c.want {
			t.Errorf("%s touches: %v, want %v", name, got, c.want)
		}
	}
	if open := (kv.Range{Start: "b"}); !(&kv.Batch{DeleteRange: []kv.Range{{Start: "x", End: "y"}}}).Touches(open) {
		t.Error("a range without end is not touched behind its start")
	}
}

func TestPagedEndsWithAnError(t *testing.T) {
	broken, calls := errors.New("broken"), 0
	seq := kv.Paged(kv.Range{}, kv.ScanOptions{}, func(in kv.Range, limit int) ([]kv.Row, error) {
		if calls++; calls == 2 {
			return nil, broken
		}
		rows := make([]kv.Row, limit)
		for i := range rows {
			rows[i].Key = strings.Repeat("k", i+1)
		}
		return rows, nil
	})
	n, last := 0, error(nil)
	for _, err := range seq {
		n, last = n+1, err
	}
	if n == 0 || !errors.Is(last, broken) || calls != 2 {
		t.Errorf("%d rows in %d pages, then %v", n, calls, last)
	}
}

func TestCheckKey(t *testing.T) {
	for _, good := range []string{"a", ":", "\xff", "é", strings.Repeat("k", kv.MaxKey)} {
		if err := kv.CheckKey(good); err != nil {
			t.Errorf("CheckKey(%.20q) = %v", good, err)
		}
	}
	for _, bad := range []string{"", "\x00", "a\x00b", strings.Repeat("k", kv.MaxKey+1)} {
		if err := kv.CheckKey(bad); !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("CheckKey(%.20q) = %v, want ErrInvalidKey", bad, err)
		}
	}
}

func TestBatchCheck(t *testing.T) {
	large := make([]byte, kv.MaxValue+1)
	for name, c := range map[string]struct {
		batch kv.Batch
		want  error
	}{
		"empty":          {kv.Batch{}, nil},
		"sound":          {kv.Batch{Expect: []kv.Expect{{Key: "a"}}, Delete: []string{"a"}, Set: []kv.Set{{Key: "a", Value: large[:kv.MaxValue]}, {Key: "b"}}}, nil},
		"expects no key": {kv.Batch{Expect: []kv.Expect{{}}}, kv.ErrInvalidKey},
		"deletes no key": {kv.Batch{Delete: []string{""}}, kv.ErrInvalidKey},
		"sets no key":    {kv.Batch{Set: []kv.Set{{}}}, kv.ErrInvalidKey},
		"too large":      {kv.Batch{Set: []kv.Set{{Key: "a", Value: large}}}, kv.ErrTooLarge},
		"set twice":      {kv.Batch{Set: []kv.Set{{Key: "a"}, {Key: "a"}}}, kv.ErrInvalidBatch},
	} {
		if err := c.batch.Check(); !errors.Is(err, c.want) {
			t.Errorf("%s: Check() = %v, want %v", name, err, c.want)
		}
	}
}

func TestErrorsSayWhatFailed(t *testing.T) {
	conflict := error(&kv.ConflictError{Key: "head", Want: 3, Got: 4})
	if !errors.Is(conflict, kv.ErrConflict) || !strings.Contains(conflict.Error(), `"head" is at version 4, expected 3`) {
		t.Errorf("conflict reads %q", conflict)
	}
	missing := &kv.MissingBlobsError{}
	for i := range 5 {
		missing.IDs = append(missing.IDs, blob.Sum([]byte{byte(i)}))
	}
	if !errors.Is(missing, blob.ErrNotFound) {
		t.Error("missing blobs are not blob.ErrNotFound")
	}
	text := missing.Error()
	if !strings.Contains(text, "5 missing blobs") || !strings.Contains(text, missing.IDs[2].String()) || strings.Contains(text, missing.IDs[3].String()) {
		t.Errorf("missing blobs read %q, want the count and the first three", text)
	}
}
