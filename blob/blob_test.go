package blob_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
)

const helloHex = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

func TestSumIsSHA256(t *testing.T) {
	if got := blob.Sum([]byte("hello")).String(); got != helloHex {
		t.Errorf("got %s, want %s", got, helloHex)
	}
	if got := blob.New([]byte("hello")); got.ID != blob.Sum([]byte("hello")) || string(got.Data) != "hello" {
		t.Errorf("New: got %+v", got)
	}
}

func TestParseID(t *testing.T) {
	want := blob.Sum([]byte("hello"))
	for _, text := range []string{helloHex, strings.ToUpper(helloHex), " " + helloHex + "\n"} {
		if got, err := blob.ParseID(text); err != nil || got != want {
			t.Errorf("ParseID(%q): got %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", helloHex[1:], helloHex + "00", strings.Repeat("g", 64), strings.Repeat("é", 32)} {
		if got, err := blob.ParseID(text); !errors.Is(err, blob.ErrInvalidID) || !got.IsZero() {
			t.Errorf("ParseID(%q): got %s, %v, want ErrInvalidID", text, got, err)
		}
	}
}

func TestIDFromBytes(t *testing.T) {
	want := blob.Sum([]byte("hello"))
	raw := want.Bytes()
	got, err := blob.IDFromBytes(raw)
	if err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	raw[0]++
	if got != want || want.Bytes()[0] == raw[0] {
		t.Error("an id shares memory with the bytes it came from or gave")
	}
	for _, n := range []int{0, 31, 33, 64} {
		if _, err := blob.IDFromBytes(make([]byte, n)); !errors.Is(err, blob.ErrInvalidID) {
			t.Errorf("%d bytes: got %v, want ErrInvalidID", n, err)
		}
	}
}

func TestIDInJSON(t *testing.T) {
	type row struct {
		ID    blob.ID
		Names map[blob.ID]string
	}
	want := blob.Sum([]byte("hello"))
	text, err := json.Marshal(row{ID: want, Names: map[blob.ID]string{want: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if expect := `{"ID":"` + helloHex + `","Names":{"` + helloHex + `":"x"}}`; string(text) != expect {
		t.Errorf("got %s, want %s", text, expect)
	}
	var got row
	if err := json.Unmarshal(text, &got); err != nil || got.ID != want || got.Names[want] != "x" {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"ID":"12"}`), &got); !errors.Is(err, blob.ErrInvalidID) {
		t.Errorf("short id: got %v, want ErrInvalidID", err)
	}
}

func TestIDOrderAndForms(t *testing.T) {
	low, high := blob.ID{1}, blob.ID{1, 1}
	if low.Compare(high) >= 0 || high.Compare(low) <= 0 || low.Compare(low) != 0 {
		t.Error("Compare does not order by bytes")
	}
	if got := blob.Sum([]byte("hello")).Short(); got != helloHex[:12] {
		t.Errorf("Short: got %s, want %s", got, helloHex[:12])
	}
	if !(blob.ID{}).IsZero() || low.IsZero() {
		t.Error("IsZero is wrong")
	}
}

func FuzzParseID(f *testing.F) {
	f.Add(helloHex)
	f.Add(" " + strings.ToUpper(helloHex))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := blob.ParseID(text)
		if err != nil {
			if !errors.Is(err, blob.ErrInvalidID) {
				t.Errorf("got %v, want ErrInvalidID", err)
			}
			return
		}
		if got := strings.ToLower(strings.TrimSpace(text)); got != id.String() {
			t.Errorf("parsed %q as %s", text, id)
		}
	})
}

// TestBuilderNamesWhatItMakes compares the ids of a growing list with those of
// the same contents made whole.
func TestBuilderNamesWhatItMakes(t *testing.T) {
	builder, appended := blob.NewBuilder(), []byte(nil)
	var stored []byte // the content of the blob committed last
	for i := range 20 {
		entry := bytes.Repeat([]byte{byte(i)}, i)
		builder.Append(entry)
		appended = append(appended, entry...)
		tail := []byte{byte(200 + i)}
		b := builder.Blob(tail)
		whole := append(bytes.Clone(appended), tail...)
		if b.ID != blob.Sum(whole) {
			t.Fatalf("blob %d is named %s, want %s", i, b.ID, blob.Sum(whole))
		}
		if got := append(bytes.Clone(stored[:b.Keep]), b.Data...); !bytes.Equal(got, whole) {
			t.Fatalf("blob %d says %v, want %v", i, got, whole)
		}
		if builder.Len() != int64(len(appended)) {
			t.Fatalf("Len: got %d, want %d", builder.Len(), len(appended))
		}
		if i%3 != 0 { // a blob that was not stored is not built upon
			builder.Commit(b)
			stored = whole
		}
	}
}

// Layers add to a size, so that the largest numbers would become negative on their way.
func TestPutFromRefusesImpossibleSizes(t *testing.T) {
	for size, want := range map[int64]error{
		-1: blob.ErrMismatch, math.MinInt64: blob.ErrMismatch, blob.MaxSize + 1: blob.ErrTooLarge, math.MaxInt64: blob.ErrTooLarge,
	} {
		err := blob.PutFrom(t.Context(), nil, blob.ID{1}, strings.NewReader("x"), size)
		if !errors.Is(err, want) || !strings.Contains(err.Error(), strconv.FormatInt(size, 10)) {
			t.Errorf("%d: got %v, want %v", size, err, want)
		}
	}
}
