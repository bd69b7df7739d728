package keyring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

var floor = &Params{Time: minTime, MemoryKiB: minMemoryKiB, Threads: 1}

func rawUnlock(b byte) Unlock { return Raw(bytes.Repeat([]byte{b}, keySize)) }

func create(t *testing.T, u Unlock) *Ring {
	t.Helper()
	r, err := Create(filepath.Join(t.TempDir(), "keys.json"), u)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fingerprint compares keys without printing them.
func fingerprint(t *testing.T, k Key, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out, err := k.Derive(nil, "test", 8)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s/%x", k.ID(), out)
}

func active(t *testing.T, r *Ring) string  { k, err := r.Active(); return fingerprint(t, k, err) }
func nameKey(t *testing.T, r *Ring) string { k, err := r.NameKey(); return fingerprint(t, k, err) }
func activeID(t *testing.T, r *Ring) KeyID {
	k, err := r.Active()
	fingerprint(t, k, err)
	return k.ID()
}
func reopen(t *testing.T, r *Ring, u Unlock) *Ring {
	t.Helper()
	again, err := Open(r.path, u)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestEveryUnlockOpensWhatItLocked(t *testing.T) {
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "key")
	if err := GenerateKeyFile(keyFile); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "binary")
	if err := os.WriteFile(binary, bytes.Repeat([]byte{0xfe}, keySize), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, u := range map[string]Unlock{
		"passphrase":   Passphrase("correct horse", floor),
		"hex key file": KeyFile(keyFile),
		"raw key file": KeyFile(binary),
		"given bytes":  rawUnlock(1),
	} {
		t.Run(name, func(t *testing.T) {
			r := create(t, u)
			again := reopen(t, r, u)
			if got, want := active(t, again), active(t, r); got != want {
				t.Errorf("active key after reopening is %s, want %s", got, want)
			}
			if got, want := nameKey(t, again), nameKey(t, r); got != want {
				t.Errorf("name key after reopening is %s, want %s", got, want)
			}
		})
	}
	if r := create(t, KeyFile(binary)); active(t, reopen(t, r, rawUnlock(0xfe))) != active(t, r) {
		t.Error("the bytes of a key file do not open what the file locked")
	}
}

func TestWrongKeyIsNotDamage(t *testing.T) {
	r := create(t, Passphrase("right", floor))
	for name, u := range map[string]Unlock{
		"other passphrase": Passphrase("wrong", floor),
		"key":              rawUnlock(1),
	} {
		if _, err := Open(r.path, u); !errors.Is(err, ErrWrongKey) || errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, want ErrWrongKey", name, err)
		}
	}
	r = create(t, rawUnlock(1))
	for name, u := range map[string]Unlock{"other key": rawUnlock(2), "passphrase": Passphrase("x", floor)} {
		if _, err := Open(r.path, u); !errors.Is(err, ErrWrongKey) {
			t.Errorf("%s: %v, want ErrWrongKey", name, err)
		}
	}
}

// Every byte of the file is flipped in turn. White space may change without
// harm; whatever else changes is refused, and never as a wrong key.
func TestEveryFlippedByteIsRefused(t *testing.T) {
	r := create(t, rawUnlock(1))
	if err := r.Rotate(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(r.path)
	if err != nil {
		t.Fatal(err)
	}
	want := active(t, r)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x01
		if err := os.WriteFile(r.path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Open(r.path, rawUnlock(1))
		switch {
		case err == nil && (active(t, got) != want || len(got.List()) != 2):
			t.Fatalf("byte %d (%q): opened with other content", i, good[i])
		case err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion):
			t.Fatalf("byte %d (%q): %v, want ErrCorrupt", i, good[i], err)
		}
	}
}

func TestTruncatedFilesAreRefused(t *testing.T) {
	r := create(t, rawUnlock(1))
	good, _ := os.ReadFile(r.path)
	for n := 0; n < len(good)-1; n += 7 {
		os.WriteFile(r.path, good[:n], 0o600)
		if _, err := Open(r.path, rawUnlock(1)); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d of %d bytes: %v, want ErrCorrupt", n, len(good), err)
		}
	}
}

// An attacker who can write the file but lacks the key recomputes the checksum.
func TestTamperingWithoutTheKeyIsRefused(t *testing.T) {
	r := create(t, rawUnlock(1))
	if err := r.Rotate(); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(r.path)
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	var b body
	if err := json.Unmarshal(f.Body, &b); err != nil {
		t.Fatal(err)
	}
	b.Keys = b.Keys[:1] // forget the new key, make the old one active again
	b.Keys[0].Status = statusActive
	f.Body, _ = json.Marshal(b)
	f.Sum = sumHex(f.Body)
	data, _ = json.Marshal(f)
	os.WriteFile(r.path, data, 0o600)
	if _, err := Open(r.path, rawUnlock(1)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a rolled back ring opens: %v", err)
	}
}

func TestUnknownVersionIsRefused(t *testing.T) {
	r := create(t, rawUnlock(1))
	data, _ := os.ReadFile(r.path)
	for _, version := range []string{"0", "2", "99"} {
		newer := bytes.Replace(data, []byte(`"version": 1`), []byte(`"later": true, "version": `+version), 1)
		os.WriteFile(r.path, newer, 0o600)
		if _, err := Open(r.path, rawUnlock(1)); !errors.Is(err, ErrVersion) {
			t.Errorf("version %s: %v, want ErrVersion", version, err)
		}
	}
}

func TestWeakAndRuinousParametersAreRefused(t *testing.T) {
	for _, p := range []Params{{Time: 1}, {MemoryKiB: minMemoryKiB - 1}, {Time: maxTime + 1}, {MemoryKiB: maxMemoryKiB + 1}, {Threads: maxThreads + 1}} {
		path := filepath.Join(t.TempDir(), "keys.json")
		if _, err := Create(path, Passphrase("x", &p)); !errors.Is(err, ErrWeak) {
			t.Errorf("create with %+v: %v, want ErrWeak", p, err)
		}
		stored := p.withDefaults()
		l := lock{Kind: lockPassphrase, Salt: make([]byte, 16), Time: stored.Time, MemoryKiB: stored.MemoryKiB, Threads: stored.Threads}
		if _, err := Passphrase("x", nil).master(l); !errors.Is(err, ErrWeak) {
			t.Errorf("open with stored %+v: %v, want ErrWeak", p, err)
		}
	}
	if got, want := (*Params)(nil).withDefaults(), (Params{3, 64 << 10, 1}); got != want || want.check() != nil {
		t.Errorf("default parameters are %+v, want %+v", got, want)
	}
}

func TestUnusableKeysAreRefused(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	os.WriteFile(short, []byte("abc123"), 0o600)
	for name, u := range map[string]Unlock{
		"zero": {}, "empty passphrase": Passphrase("", nil), "no bytes": Raw(nil), "31 bytes": Raw(make([]byte, 31)), "short file": KeyFile(short),
	} {
		if _, err := Create(filepath.Join(dir, "keys.json"), u); !errors.Is(err, ErrUnusable) {
			t.Errorf("%s: %v, want ErrUnusable", name, err)
		}
	}
	var zero Ring
	if _, err := zero.Active(); !errors.Is(err, ErrUnusable) {
		t.Errorf("zero ring gives an active key: %v", err)
	}
	if err := zero.Rotate(); !errors.Is(err, ErrUnusable) {
		t.Errorf("zero ring rotates: %v", err)
	}
	if _, err := (Key{}).Derive(nil, "", 32); !errors.Is(err, ErrUnusable) {
		t.Errorf("zero key derives: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none"), rawUnlock(1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open of nothing: %v", err)
	}
}

func TestCreateNeverReplaces(t *testing.T) {
	r := create(t, rawUnlock(1))
	if _, err := Create(r.path, rawUnlock(2)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second create: %v, want fs.ErrExist", err)
	}
	if err := GenerateKeyFile(r.path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("key file over a ring: %v, want fs.ErrExist", err)
	}
	if got := active(t, reopen(t, r, rawUnlock(1))); got != active(t, r) {
		t.Error("the first ring was replaced")
	}
	info, err := os.Stat(r.path)
	if err != nil || !testenv.HasMode(info, 0o600) {
		t.Errorf("ring has mode %v, %v, want 0600", info.Mode(), err)
	}
}

func TestRotateKeepsOldKeysAndTheNameKey(t *testing.T) {
	r := create(t, rawUnlock(1))
	first, name := active(t, r), nameKey(t, r)
	firstID := activeID(t, r)
	for range 3 {
		if err := r.Rotate(); err != nil {
			t.Fatal(err)
		}
	}
	for _, ring := range []*Ring{r, reopen(t, r, rawUnlock(1))} {
		old, err := ring.Key(firstID)
		if got := fingerprint(t, old, err); got != first {
			t.Errorf("first key reads as %s, want %s", got, first)
		}
		if got := nameKey(t, ring); got != name {
			t.Errorf("name key became %s, was %s", got, name)
		}
		list := ring.List()
		if len(list) != 4 || !list[3].Active || list[0].Active || list[0].ID != firstID || list[3].ID != activeID(t, ring) {
			t.Errorf("list is %+v", list)
		}
	}
}

func TestRewrapChangesTheLockOnly(t *testing.T) {
	r := create(t, rawUnlock(1))
	if err := r.Rotate(); err != nil {
		t.Fatal(err)
	}
	before := active(t, r)
	if err := r.Rewrap(Passphrase("new", floor)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(r.path, rawUnlock(1)); !errors.Is(err, ErrWrongKey) {
		t.Errorf("the old lock still opens: %v", err)
	}
	again := reopen(t, r, Passphrase("new", nil))
	if got := active(t, again); got != before || len(again.List()) != 2 {
		t.Errorf("active key became %s, was %s", got, before)
	}
	if err := r.Rotate(); err != nil {
		t.Errorf("rotate after rewrap: %v", err)
	}
}

func TestKeysOfAnotherProcessAreFound(t *testing.T) {
	a := create(t, rawUnlock(1))
	b := reopen(t, a, rawUnlock(1))
	if err := b.Rotate(); err != nil {
		t.Fatal(err)
	}
	k, err := a.Key(activeID(t, b))
	if got := fingerprint(t, k, err); got != active(t, b) {
		t.Errorf("found %s, want %s", got, active(t, b))
	}
	if _, err := a.Key(KeyID{1}); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a key that nobody made: %v", err)
	}
	if err := b.Rewrap(rawUnlock(2)); err != nil {
		t.Fatal(err)
	}
	if err := a.Rotate(); !errors.Is(err, ErrWrongKey) {
		t.Errorf("rotate behind a new lock: %v, want ErrWrongKey", err)
	}
	if _, err := a.Key(KeyID{1}); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("unknown key behind a new lock: %v", err)
	}
}

func TestConcurrentRotationsLoseNoKey(t *testing.T) {
	r := create(t, rawUnlock(1))
	var wg sync.WaitGroup
	const rings, each = 4, 5
	for range rings {
		ring := reopen(t, r, rawUnlock(1)) // its own lock, as in a process of its own
		wg.Go(func() {
			for range each {
				if err := ring.Rotate(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, want := len(reopen(t, r, rawUnlock(1)).List()), 1+rings*each; got != want {
		t.Errorf("%d keys, want %d", got, want)
	}
}

func TestAFailureAtAnyStepLeavesTheOldOrTheNewRing(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, step := range []string{"create", "write", "sync", "rename", "sync directory"} {
		t.Run(step, func(t *testing.T) {
			r := create(t, rawUnlock(1))
			before := active(t, r)
			r.fault = func(s string) error {
				if s == step {
					return broken
				}
				return nil
			}
			if err := r.Rotate(); !errors.Is(err, broken) {
				t.Fatalf("rotate: %v", err)
			}
			if got := active(t, r); got != before {
				t.Error("a key that may not be durable is used")
			}
			onDisk := reopen(t, r, rawUnlock(1)).List()
			if want := 1; step != "sync directory" && len(onDisk) != want {
				t.Errorf("%d keys on disk, want %d", len(onDisk), want)
			}
			r.fault = nil
			if err := r.Rotate(); err != nil {
				t.Fatal(err)
			}
			if got := len(reopen(t, r, rawUnlock(1)).List()); got != len(onDisk)+1 {
				t.Errorf("%d keys after the next rotation, want %d", got, len(onDisk)+1)
			}
		})
	}
}

func TestALeftoverOfAKilledProcessDoesNoHarm(t *testing.T) {
	r := create(t, rawUnlock(1))
	os.WriteFile(r.path+".tmp", []byte("half a ri"), 0o600)
	if err := r.Rotate(); err != nil {
		t.Fatal(err)
	}
	reopen(t, r, rawUnlock(1))
	if _, err := os.Stat(r.path + ".tmp"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}
}

func TestNothingPrintsASecret(t *testing.T) {
	secret := "canary-passphrase"
	u := Passphrase(secret, floor)
	r := create(t, u)
	k, _ := r.Active()
	holder := struct {
		k Key
		u Unlock
		r *Ring
	}{k, u, r}
	file, _ := os.ReadFile(r.path)
	text := string(file)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{u, &u, r, k, &k, holder, &holder, []any{u, k}} {
			text += fmt.Sprintf(verb, v)
		}
	}
	_, err := Open(r.path, Passphrase(secret+"x", nil))
	text += err.Error()
	asJSON, _ := json.Marshal([]any{u, r, k, r.List()})
	text += string(asJSON)
	for name, bad := range map[string]string{
		"passphrase": secret, "key in hex": fmt.Sprintf("%x", k.secret()[:4]), "key in decimal": strings.Trim(fmt.Sprint(k.secret()[:4]), "[]"),
		"passphrase in decimal": strings.Trim(fmt.Sprint([]byte(secret)), "[]"), "passphrase in hex": fmt.Sprintf("%x", secret),
	} {
		if strings.Contains(strings.ToLower(text), bad) {
			t.Errorf("%s is printed", name)
		}
	}
}

func TestFilesThatOthersCanReadAreRefused(t *testing.T) {
	testenv.NeedModes(t)
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := GenerateKeyFile(keyFile); err != nil {
		t.Fatal(err)
	}
	r := create(t, KeyFile(keyFile))
	for _, path := range []string{keyFile, r.path} {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(r.path, KeyFile(keyFile)); !errors.Is(err, ErrExposed) || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("%s: %v", path, err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		reopen(t, r, KeyFile(keyFile))
	}
}

func TestRemoveTakesRetiredKeysOnly(t *testing.T) {
	r := create(t, rawUnlock(1))
	first := active(t, r)
	if err := r.Rotate(); err != nil {
		t.Fatal(err)
	}
	other := reopen(t, r, rawUnlock(1))
	if err := r.Remove(r.List()[0].ID, r.List()[1].ID); !errors.Is(err, ErrUnusable) || len(reopen(t, r, rawUnlock(1)).List()) != 2 {
		t.Errorf("with the active key: %v, %d keys left", err, len(reopen(t, r, rawUnlock(1)).List()))
	}
	if err := r.Remove(r.List()[0].ID, KeyID{9}); err != nil {
		t.Fatal(err)
	}
	for name, ring := range map[string]*Ring{"itself": r, "from disk": reopen(t, r, rawUnlock(1))} {
		if keys := ring.List(); len(keys) != 1 || !keys[0].Active || active(t, ring) == first {
			t.Errorf("%s: %v", name, keys)
		}
	}
	if err := other.Refresh(); err != nil || len(other.List()) != 1 {
		t.Errorf("another process: %v, %d keys", err, len(other.List()))
	}
}
