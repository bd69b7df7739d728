// Package access controls access to a shared server: tokens with a scope and a
// tenant, limits of tenants, and an audit log of destructive calls.
//
//	tokens := access.OpenTokens(filepath.Join(dir, access.TokensName))
//	secret, info, err := tokens.Create(access.Grant{Tenant: "shop", Scope: access.Write})
//	…
//	who, err := tokens.Verify(secret) // later, perhaps in another process
//	if !who.Scope.Allows(access.Write) { … }
//
// A token is shown once and never stored: the file holds only hashes, errors and log
// lines only ids. Checking a token takes the same steps whether or not its id is
// known. Package server decides where tenants' data is and which calls need which
// scope.
package access

import (
	"fmt"
	"regexp"
	"sync"

	"github.com/stet-dev/stet/fault"
)

// Scope is what a token allows. Each scope includes the ones before it.
type Scope int

// The scopes.
const (
	none  Scope = iota
	Read        // read all data of the tenant
	Write       // and change it
	Admin       // and run maintenance: collect, check
)

var scopeNames = []string{Read: "read", Write: "write", Admin: "admin"}

// String returns the name of the scope.
func (s Scope) String() string {
	if s <= none || s > Admin {
		return "none"
	}
	return scopeNames[s]
}

// Allows reports whether the scope includes another.
func (s Scope) Allows(needed Scope) bool { return s > none && s <= Admin && s >= needed }

// ParseScope returns the scope of that name.
func ParseScope(name string) (Scope, error) {
	for s := Read; s <= Admin; s++ {
		if scopeNames[s] == name {
			return s, nil
		}
	}
	return none, fmt.Errorf("%w scope %q; use read, write or admin", ErrInvalid, name)
}

// MarshalText writes the name.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name.
func (s *Scope) UnmarshalText(text []byte) (err error) {
	*s, err = ParseScope(string(text))
	return err
}

// Errors of this package. None of them holds a token.
var (
	// ErrDenied says that a token is unknown, revoked, expired or malformed. It does
	// not say which, so that callers without a token learn nothing.
	ErrDenied = fault.New(fault.Denied, "the token is not valid")
	// ErrInvalid says that an argument is invalid.
	ErrInvalid = fault.New(fault.Invalid, "invalid")
	// ErrNotFound says that there is no token with that id.
	ErrNotFound = fault.New(fault.NotFound, "token not found")
)

// tenantName is short, and safe as the name of a directory on every system.
var tenantName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`) })

// CheckTenant rejects invalid tenant names. A name is 1 to 63 lower-case letters,
// digits, - and _, and begins with a letter or a digit.
func CheckTenant(name string) error {
	if !tenantName().MatchString(name) {
		return fmt.Errorf("%w: tenant %q: use up to 63 lower-case letters, digits, - and _, beginning with a letter or a digit", ErrInvalid, name)
	}
	return nil
}
