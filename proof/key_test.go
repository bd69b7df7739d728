package proof_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stet-dev/stet/internal/private"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/proof"
)

func TestTheKeyOfAStoreIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	keys := make([]ed25519.PrivateKey, 8)
	for i := range keys {
		wg.Go(func() {
			made, err := proof.StoreKey(dir, nil)
			if err != nil {
				t.Error(err)
			}
			keys[i] = made
		})
	}
	wg.Wait()
	for _, k := range keys {
		if !k.Equal(keys[0]) {
			t.Fatal("two callers got two keys")
		}
	}
	files, err := os.ReadDir(dir)
	must(t, err)
	info, err := os.Stat(filepath.Join(dir, proof.KeyName))
	must(t, err)
	if len(files) != 1 || info.Mode().Perm() != 0o600 {
		t.Errorf("files %v, mode %v", files, info.Mode())
	}
	must(t, os.Chmod(filepath.Join(dir, proof.KeyName), 0o644))
	if _, err := proof.StoreKey(dir, nil); !errors.Is(err, private.ErrExposed) {
		t.Errorf("a key that others can read: %v", err)
	}
}

// The key of an encrypted store is nowhere on disk, and stays when data keys change.
func TestTheKeyOfAnEncryptedStoreIsDerived(t *testing.T) {
	dir := t.TempDir()
	ring, err := keyring.Create(filepath.Join(dir, "keys.json"), keyring.Raw(bytes.Repeat([]byte{7}, 32)))
	must(t, err)
	first, err := proof.StoreKey(dir, ring)
	must(t, err)
	must(t, ring.Rotate())
	second, err := proof.StoreKey(dir, ring)
	must(t, err)
	if !first.Equal(second) {
		t.Error("a rotation changed the key")
	}
	if _, err := os.Stat(filepath.Join(dir, proof.KeyName)); !os.IsNotExist(err) {
		t.Errorf("%s: %v", proof.KeyName, err)
	}
}

func TestKeysOfOpenSSH(t *testing.T) {
	read := func(name string) (ed25519.PrivateKey, error) {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		must(t, err)
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, data, 0o600))
		return proof.ReadKey(path)
	}
	k, err := read("id_ed25519")
	must(t, err)
	text, err := os.ReadFile("testdata/id_ed25519.pub")
	must(t, err)
	want, err := proof.ParsePublic(string(text))
	must(t, err)
	if !want.Equal(k.Public()) || !strings.HasPrefix(string(text), proof.FormatPublic(want)+" ") {
		t.Error("the public key is another one")
	}
	if _, err := read("id_locked"); !errors.Is(err, proof.ErrBadKey) || !strings.Contains(err.Error(), "passphrase") {
		t.Errorf("a key with a passphrase: %v", err)
	}
}

func TestTextsThatAreNoKeys(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(other)
	must(t, err)
	good, err := os.ReadFile("testdata/id_ed25519")
	must(t, err)
	block, _ := pem.Decode(good)
	files := map[string][]byte{
		"empty": nil, "a text": []byte("hello"),
		"another kind": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		"damaged":      pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("hello")}),
	}
	for n := range block.Bytes[:len(block.Bytes)-16] { // without its comment and padding
		files["cut off"] = pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes[:n]})
		for name, data := range files {
			path := filepath.Join(t.TempDir(), "key")
			must(t, os.WriteFile(path, data, 0o600))
			if _, err := proof.ReadKey(path); !errors.Is(err, proof.ErrBadKey) {
				t.Errorf("%s, %d bytes: %v", name, n, err)
			}
		}
		files = map[string][]byte{} // the others once
	}
	text := proof.FormatPublic(public)
	for _, bad := range []string{"", "ssh-rsa AAAA", "ssh-ed25519", "ssh-ed25519 !", text[:len(text)-4], strings.Replace(text, "ssh-ed25519 ", "ssh-ed448 ", 1), "00"} {
		if _, err := proof.ParsePublic(bad); !errors.Is(err, proof.ErrBadKey) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, fine := range []string{text, text + " me@home\n", hex.EncodeToString(public)} {
		if got, err := proof.ParsePublic(fine); err != nil || !got.Equal(public) {
			t.Errorf("%q: %v", fine, err)
		}
	}
}
