package access

import (
	"errors"
	"strconv"
	"testing"
)

// memory is a Keeper that counts.
type memory struct {
	content []byte
	stamp   int
	err     error
}

func (m *memory) Load() ([]byte, string, error) { return m.content, strconv.Itoa(m.stamp), m.err }

func (m *memory) Change(do func([]byte) ([]byte, error)) error {
	if _, err := do(m.content); err != nil { // as if another process had been faster
		return err
	}
	content, err := do(m.content)
	if err == nil {
		m.content, m.stamp = content, m.stamp+1
	}
	return err
}

func TestTokensOfAnotherKeeper(t *testing.T) {
	kept := &memory{}
	here, there := KeepTokens(kept), KeepTokens(kept)
	if empty, err := here.Empty(); err != nil || !empty {
		t.Fatalf("empty: %v, %v", empty, err)
	}
	token, info, err := here.Create(Grant{Tenant: "shop", Scope: Write})
	if err != nil {
		t.Fatal(err)
	}
	if who, err := there.Verify(token); err != nil || who.Tenant != "shop" || who.Scope != Write {
		t.Errorf("%+v, %v", who, err)
	}
	if infos, err := there.List(); err != nil || len(infos) != 1 || infos[0].ID != info.ID {
		t.Errorf("%+v, %v", infos, err)
	}
	if _, err := there.Revoke("another"); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoke what is not there: %v", err)
	}
	if _, err := there.Revoke(info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Verify(token); !errors.Is(err, ErrDenied) {
		t.Errorf("a revoked token: %v", err)
	}
	away := errors.New("away")
	kept.err = away
	if _, err := here.Verify(token); !errors.Is(err, away) {
		t.Errorf("while nobody knows: %v", err)
	}
	kept.err, kept.content, kept.stamp = nil, []byte("{"), 99
	if _, err := here.Verify(token); !errors.Is(err, ErrInvalid) {
		t.Errorf("damaged: %v", err)
	}
}
