package cursor_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
)

// A conversation of which only the pointer and its blobs are left is read; one that was
// deleted is not.
func TestConversationWithoutARow(t *testing.T) {
	path := cursortest.Copy(t, "testdata/state.vscdb", "state.vscdb")
	db := cursortest.Create(t, path, "DELETE FROM cursorDiskKV WHERE key = 'composerData:"+cursortest.Current+"'")
	const root = "9d82aff3c9b4fc5fcc5e2f917e52eb09c0705f8bb72a21fc65433001ceb6ddf9"
	cursortest.Insert(t, db, "agentKv:checkpoint:"+cursortest.Deleted, root)
	db.Close()
	s := cursortest.Open(t, path, nil)
	var ids []string
	for _, h := range cursortest.Collect(t, s.Conversations(t.Context())) {
		if !h.Missing {
			ids = append(ids, h.ID)
		}
	}
	if strings.Join(ids, " ") != cursortest.Legacy+" "+cursortest.Current {
		t.Errorf("conversations %v", ids)
	}
	c, err := s.Conversation(t.Context(), cursortest.Current)
	if err != nil || c.State == nil || c.State.ID.String() != root || c.StateErr != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := s.Conversation(t.Context(), cursortest.Deleted); !errors.Is(err, cursor.ErrNotFound) {
		t.Errorf("a deleted one: %v", err)
	}
}

// A store of the SDK is found from the directory above it.
func TestStoreInASubdirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "one"), os.DirFS("testdata/sdk-store/sqlite")); err != nil {
		t.Fatal(err)
	}
	if s := cursortest.Open(t, dir, nil); s.Kind() != cursor.KindSDK {
		t.Errorf("a store of kind %s", s.Kind())
	}
	if err := os.CopyFS(filepath.Join(dir, "two"), os.DirFS("testdata/sdk-store/jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, err := cursor.Open(t.Context(), dir, nil); !errors.Is(err, cursor.ErrMissingTable) || !strings.Contains(err.Error(), "two") {
		t.Errorf("two stores: %v", err)
	}
	if len(cursor.Inside(dir)) != 2 {
		t.Errorf("inside are %v", cursor.Inside(dir))
	}
}

// Blobs that are encrypted in the editor's table are read with their key. Another key is
// an error, and the row stays.
func TestEncryptedRowsOfTheEditor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema)
	b := blob.New([]byte("hello, world"))
	sum := sha256.Sum256([]byte("the key"))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, gcm.NonceSize())
	cursortest.Insert(t, db, "agentKv:blob:"+b.ID.String(), gcm.Seal(nonce, nonce, b.Data, nil))
	db.Close()
	for key, want := range map[string]error{"the key": nil, "another": cursor.ErrWrongKey, "": blob.ErrCorrupt} {
		s := cursortest.Open(t, path, &cursor.Options{Key: cursor.NewSecret(key)})
		data, err := s.Blobs().Get(t.Context(), b.ID)
		if !errors.Is(err, want) || err == nil && string(data) != string(b.Data) {
			t.Errorf("with the key %q: %q, %v", key, data, err)
		}
	}
}
