package minisign

import (
	"crypto/ed25519"
	"strings"
	"testing"
)

func testKey() *Key {
	return NewKey([8]byte{1, 2, 3}, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
}

func TestSignaturesAreVerified(t *testing.T) {
	key := testKey()
	again, err := ParseKey(key.Text(), "")
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("hello\n")
	signature := again.Sign(data, "stet v0.1.0")
	if comment, err := Verify(key.Public(), data, signature); err != nil || comment != "stet v0.1.0" {
		t.Errorf("got %q, %v", comment, err)
	}
	other := NewKey([8]byte{9}, ed25519.NewKeyFromSeed(append(make([]byte, 31), 1)))
	same := NewKey([8]byte{1, 2, 3}, ed25519.NewKeyFromSeed(append(make([]byte, 31), 1)))
	for name, c := range map[string]struct {
		public, signature, want string
		data                    []byte
	}{
		"other data":      {key.Public(), signature, "does not fit", []byte("hello")},
		"other key":       {other.Public(), signature, "of another key", data},
		"other key's id":  {same.Public(), signature, "does not fit", data},
		"changed comment": {key.Public(), strings.Replace(signature, "v0.1.0", "v0.2.0", 1), "comment was changed", data},
		"no comment":      {key.Public(), strings.Join(strings.Split(signature, "\n")[:2], "\n"), "no trusted comment", data},
		"empty":           {key.Public(), "", "not a file of minisign", data},
		"a key":           {key.Public(), key.Public(), "42 bytes instead of 74", data},
		"no public key":   {"", signature, "public key: not a file", data},
	} {
		if _, err := Verify(c.public, c.data, c.signature); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// withPassphrase is testKey under the passphrase "secret", made by another program. Its
// limits are the smallest that libsodium has a name for.
const withPassphrase = "untrusted comment: minisign encrypted secret key\n" +
	"RWRTY0IyAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8AAAgAAAAAAAAAAAEAAAAA+XGy3yWlxEkfR2YN9FcssEhGve67beMpPrx6HHxJlAHMIMpIsDr1whntdJHNQNt2eX8sPvTZr37GtZuglbFJJq4LphWX8u16ynK+MCxtiZnK6YaMnUB+Kcr8/nxfc/I6e25X137M9/Y=" +
	"\n"

func TestKeysWithAPassphrase(t *testing.T) {
	key, err := ParseKey(withPassphrase, "secret")
	if err != nil || key.Public() != testKey().Public() {
		t.Errorf("got %v, %v", key, err)
	}
	for passphrase, want := range map[string]string{"": "none was given", "Secret": "the passphrase is wrong"} {
		if _, err := ParseKey(withPassphrase, passphrase); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %q: %v, want %s", passphrase, err, want)
		}
	}
}

func TestLimitsOfPassphrases(t *testing.T) {
	for _, c := range []struct {
		work, memory uint64
		n, p         int
	}{
		{524288, 16 << 20, 1 << 14, 1},    // interactive
		{33554432, 1 << 30, 1 << 20, 1},   // what minisign uses
		{33554432, 16 << 20, 1 << 14, 64}, // more work than memory
		{0, 1 << 30, 1 << 10, 1},
	} {
		if n, r, p := scryptParameters(c.work, c.memory); n != c.n || r != 8 || p != c.p {
			t.Errorf("%d, %d give n=%d r=%d p=%d, want n=%d p=%d", c.work, c.memory, n, r, p, c.n, c.p)
		}
	}
}

func TestBadKeys(t *testing.T) {
	text := testKey().Text()
	for name, c := range map[string]struct{ text, want string }{
		"empty":   {"", "not a file of minisign"},
		"cut off": {text[:len(text)-9], "secret key"},
		"damaged": {strings.Replace(text, "AQID", "AQIE", 1), "damaged"},
		"public":  {testKey().Public(), "42 bytes instead of 158"},
	} {
		if _, err := ParseKey(c.text, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
