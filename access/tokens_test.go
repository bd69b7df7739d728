package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/testenv"
)

func newTokens(t *testing.T) *Tokens {
	t.Helper()
	return OpenTokens(filepath.Join(t.TempDir(), "deep", TokensName))
}

func create(t *testing.T, tokens *Tokens, g Grant) (string, Info) {
	t.Helper()
	token, info, err := tokens.Create(g)
	if err != nil {
		t.Fatal(err)
	}
	return token, info
}

func TestATokenIsWhoseItIs(t *testing.T) {
	tokens := newTokens(t)
	if empty, err := tokens.Empty(); !empty || err != nil {
		t.Errorf("before the first token: %v, %v", empty, err)
	}
	a, _ := create(t, tokens, Grant{Tenant: "a", Scope: Read, Name: "reader"})
	b, info := create(t, tokens, Grant{Tenant: "b", Scope: Admin})
	for _, test := range []struct {
		token string
		want  Principal
	}{
		{a, Principal{Token: strings.Split(a, "_")[1], Tenant: "a", Scope: Read}},
		{b, Principal{Token: info.ID, Tenant: "b", Scope: Admin}},
	} {
		if got, err := tokens.Verify(test.token); err != nil || got != test.want {
			t.Errorf("got %v, %v, want %v", got, err, test.want)
		}
	}
	parts := strings.Split(a, "_")
	other := strings.Split(b, "_")
	for _, wrong := range []string{
		"", "stet", "stet__", "stet_" + parts[1] + "_", "stet_" + parts[1] + "_" + other[2], "stet_nobody_" + parts[2],
		"stet__" + parts[2], parts[2], a + "0", a[:len(a)-1], strings.ToUpper(a), "stat_" + parts[1] + "_" + parts[2], a + "_x",
	} {
		if who, err := tokens.Verify(wrong); !errors.Is(err, ErrDenied) || who != (Principal{}) {
			t.Errorf("%q: %v, %v", wrong, who, err)
		}
	}
}

func TestTheFileHoldsNoToken(t *testing.T) {
	tokens := newTokens(t)
	token, _ := create(t, tokens, Grant{Tenant: "a", Scope: Write})
	data, err := os.ReadFile(tokens.path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), strings.Split(token, "_")[2]) {
		t.Error("the secret is in the file")
	}
	info, err := os.Stat(tokens.path)
	if err != nil || !testenv.HasMode(info, 0o600) {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestRevokingHoldsForOthers(t *testing.T) {
	tokens := newTokens(t)
	token, info := create(t, tokens, Grant{Tenant: "a", Scope: Write})
	kept, _ := create(t, tokens, Grant{Tenant: "a", Scope: Write})
	server := OpenTokens(tokens.path) // as another process has it
	if _, err := server.Verify(token); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Revoke(info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Verify(token); !errors.Is(err, ErrDenied) {
		t.Errorf("a revoked token: %v", err)
	}
	if _, err := server.Verify(kept); err != nil {
		t.Errorf("the other token: %v", err)
	}
	if _, err := tokens.Revoke(info.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	infos, err := tokens.List()
	if err != nil || len(infos) != 1 {
		t.Errorf("left over: %v, %v", infos, err)
	}
}

func TestTokensExpire(t *testing.T) {
	tokens := newTokens(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tokens.now = func() time.Time { return now }
	token, _ := create(t, tokens, Grant{Tenant: "a", Scope: Read, Expires: now.Add(time.Hour)})
	if _, err := tokens.Verify(token); err != nil {
		t.Errorf("in time: %v", err)
	}
	now = now.Add(time.Hour)
	if _, err := tokens.Verify(token); !errors.Is(err, ErrDenied) {
		t.Errorf("too late: %v", err)
	}
	if _, _, err := tokens.Create(Grant{Tenant: "a", Scope: Read, Expires: now}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a token of the past: %v", err)
	}
}

func TestBadGrants(t *testing.T) {
	tokens := newTokens(t)
	for _, tenant := range []string{"", ".", "..", "a/b", `a\b`, "A", "-a", "_a", "a b", "a\x00", "ä", strings.Repeat("a", 64), "tenants/../x"} {
		if _, _, err := tokens.Create(Grant{Tenant: tenant, Scope: Read}); !errors.Is(err, ErrInvalid) {
			t.Errorf("tenant %q: %v", tenant, err)
		}
	}
	if _, _, err := tokens.Create(Grant{Tenant: "a"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no scope: %v", err)
	}
	if _, err := os.Stat(tokens.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
}

// A file that cannot be read lets nobody in, not even those whom it let in before:
// one of them may have been revoked.
func TestADamagedFileLetsNobodyIn(t *testing.T) {
	tokens := newTokens(t)
	token, _ := create(t, tokens, Grant{Tenant: "a", Scope: Read})
	if _, err := tokens.Verify(token); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"", "{", `{"version":2,"tokens":[]}`, `{"version":1,"tokens":[{"id":"x","scope":"god"}]}`} {
		if err := os.WriteFile(tokens.path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := tokens.Verify(token); err == nil || errors.Is(err, ErrDenied) {
			t.Errorf("%q: %v", content, err)
		}
		if _, _, err := tokens.Create(Grant{Tenant: "b", Scope: Read}); err == nil {
			t.Errorf("%q was replaced", content)
		}
	}
}

func TestManyMakeTokensAtOnce(t *testing.T) {
	path := newTokens(t).path
	var wg sync.WaitGroup
	made := make(chan string, 40)
	for range 4 {
		tokens := OpenTokens(path) // each as a process of its own
		for range 5 {
			wg.Go(func() {
				token, _, err := tokens.Create(Grant{Tenant: "a", Scope: Read})
				if err != nil {
					t.Error(err)
				}
				made <- token
			})
		}
	}
	wg.Wait()
	close(made)
	tokens := OpenTokens(path)
	n := 0
	for token := range made {
		n++
		if _, err := tokens.Verify(token); err != nil {
			t.Errorf("token %d: %v", n, err)
		}
	}
	infos, err := tokens.List()
	if err != nil || len(infos) != n || n != 20 {
		t.Errorf("%d made, %d listed, %v", n, len(infos), err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".tokens-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestScopes(t *testing.T) {
	for i, s := range []Scope{Read, Write, Admin} {
		for j, needed := range []Scope{Read, Write, Admin} {
			if got := s.Allows(needed); got != (i >= j) {
				t.Errorf("%v allows %v: %v", s, needed, got)
			}
		}
		if parsed, err := ParseScope(s.String()); err != nil || parsed != s {
			t.Errorf("%v: %v, %v", s, parsed, err)
		}
	}
	if none.Allows(Read) || none.Allows(none) || Scope(9).Allows(Read) {
		t.Error("something that is no scope allows something")
	}
	if _, err := ParseScope("none"); !errors.Is(err, ErrInvalid) {
		t.Errorf("none: %v", err)
	}
}

func TestTokensThatOthersCanReadAreRefused(t *testing.T) {
	testenv.NeedModes(t)
	path := filepath.Join(t.TempDir(), TokensName)
	if err := os.WriteFile(path, []byte(`{"version": 1, "tokens": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTokens(path).List(); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
		t.Errorf("mode 0640: %v", err)
	}
}
