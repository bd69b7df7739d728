package cursor_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
	"github.com/stet-dev/stet/internal/testenv"
)

const agentSchema = `CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB);
	CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);`

func TestBlobContract(t *testing.T) {
	for name, schema := range map[string]string{
		"wal.vscdb":   "PRAGMA journal_mode=WAL;" + cursortest.EditorSchema,
		"state.vscdb": cursortest.EditorSchema,
		"store.db":    "PRAGMA journal_mode=WAL;" + agentSchema,
	} {
		opts := &blobtest.Options{}
		if !testenv.Long() {
			opts.MaxBytes = 1 << 20
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time goes into waiting for the disk
			blobtest.RunWith(t, func(t *testing.T) blob.Store {
				path := filepath.Join(t.TempDir(), name)
				cursortest.Create(t, path, schema).Close()
				return cursortest.Open(t, path, &cursor.Options{Write: true}).Blobs()
			}, opts)
		})
	}
}

func TestPutWritesTheFormatOfTheOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema)
	gone := blob.New([]byte("was deleted"))
	cursortest.Insert(t, db, "agentKv:blob:"+gone.ID.String(), nil)
	s := cursortest.Open(t, path, &cursor.Options{Write: true})
	empty, zero, text := blob.New(nil), blob.New([]byte{0}), blob.New([]byte("text"))
	if err := s.Blobs().Put(t.Context(), empty, zero, text, gone); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		b      blob.Blob
		stored string
	}{{empty, "\x00"}, {zero, "\x00"}, {text, "text"}, {gone, "was deleted"}} {
		v, err := s.Value(t.Context(), "agentKv:blob:"+want.b.ID.String())
		if err != nil || v.Class != cursor.ClassBlob || string(v.Data) != want.stored {
			t.Errorf("%q is stored as %v %q, %v", want.b.Data, v.Class, v.Data, err)
		}
		data, err := s.Blobs().Get(t.Context(), want.b.ID)
		if err != nil || string(data) != string(want.b.Data) {
			t.Errorf("%q is read as %q, %v", want.b.Data, data, err)
		}
	}
}

func TestPutNeedsTheFlag(t *testing.T) {
	path := cursortest.Copy(t, "testdata/state.vscdb", "state.vscdb")
	for _, p := range []string{path, "testdata/sdk-store/sqlite", "testdata/sdk-store/jsonl"} {
		s := cursortest.Open(t, p, nil)
		if err := s.Blobs().Put(t.Context(), blob.New([]byte("x"))); !errors.Is(err, blob.ErrReadOnly) {
			t.Errorf("%s: Put = %v, want ErrReadOnly", p, err)
		}
	}
}

func TestStoredFormsOfBlobs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema)
	tests := []struct {
		name    string
		content string
		stored  any
	}{
		{"bytes", "hello", []byte("hello")},
		{"hex text", "hex", "686578"},
		{"upper-case hex text", "\xab\xcd", "ABCD"},
		{"base64 text", "base64 text", "YmFzZTY0IHRleHQ="},
		{"hex where both decode", "\xab\xcd\x12\x34", "abcd1234"},
		{"base64 where both decode", "\x69\xb7\x1d\xd7\x6d\xf8", "abcd1234"},
		{"plain text", "plain ü", "plain ü"},
		{"one real zero byte", "\x00", []byte{0}},
		{"empty as text", "", "00"},
	}
	for _, tt := range tests {
		cursortest.Insert(t, db, "agentKv:blob:"+blob.Sum([]byte(tt.content)).String(), tt.stored)
	}
	s := cursortest.Open(t, path, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data, err := s.Blobs().Get(t.Context(), blob.Sum([]byte(tt.content)))
			if err != nil || string(data) != tt.content {
				t.Errorf("Get = %q, %v; want %q", data, err, tt.content)
			}
		})
	}
}
