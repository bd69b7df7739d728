package cli

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/adrg/xdg"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/fleet"
)

// shown returns a location without its password.
func shown(place string) string {
	if !fleet.IsAddress(place) {
		return place
	}
	u, err := url.Parse(place)
	if err != nil { // this package cannot parse an address with several ports
		return hidePassword(place)
	}
	query, secret := u.Query(), false
	for name := range query {
		if strings.Contains(name, "password") {
			query.Set(name, "xxxxx")
			u.RawQuery, secret = query.Encode(), true
		}
	}
	if _, given := u.User.Password(); given || secret {
		return u.Redacted()
	}
	return place
}

// hidePassword removes everything that may be a password.
func hidePassword(place string) string {
	scheme, rest, _ := strings.Cut(place, "://")
	rest, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if user, _, given := strings.Cut(rest[:at], ":"); given {
			rest = user + ":xxxxx" + rest[at:]
		}
	}
	switch {
	case strings.Contains(query, "password"):
		rest += "?xxxxx"
	case query != "":
		rest += "?" + query
	}
	return scheme + "://" + rest
}

// nodeDir is the directory of a fleet node's own files: the operator's token and its
// part of the audit log.
func nodeDir() string { return filepath.Join(xdg.StateHome, "stet") }

// fleetConfig returns the fleet of the settings.
func (a *app) fleetConfig(ctx context.Context, database string) (fleet.Config, error) {
	config := fleet.Config{Database: database, Blobs: a.bucket, Keyring: a.keyring}
	if a.keyring == "" {
		return config, nil
	}
	unlock, err := a.unlock(ctx, filepath.Dir(a.keyring))
	if err != nil {
		return config, err
	}
	config.Unlock = &unlock
	return config, nil
}

// openFleet connects to the database and the bucket.
func (a *app) openFleet(ctx context.Context, options stet.Options) (*fleet.Fleet, error) {
	if a.storeFlag && shown(a.store) != a.store {
		a.say("everyone on this machine can see a password in --store; use STET_STORE, PGPASSWORD or PGPASSFILE")
	}
	config, err := a.fleetConfig(ctx, a.storePlace())
	if err != nil {
		return nil, err
	}
	config.Options = options
	return fleet.Open(ctx, config)
}

// openFleetStore opens the store of the tenant that the settings name. Closing it
// ends the connections.
func (a *app) openFleetStore(ctx context.Context) (*stet.DB, error) {
	if given := a.givenKey(); given != "" && a.keyring == "" {
		return nil, coded(ExitConflict, "%s gives a key, but no keyring is set; set keyring (STET_KEYRING), or omit the key", given)
	}
	options, err := a.storeOptions()
	if err != nil {
		return nil, err
	}
	f, err := a.openFleet(ctx, options)
	if err != nil {
		return nil, err
	}
	db, err := f.OpenOnly(ctx, a.tenant)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	a.fleet = f
	return db, nil
}
