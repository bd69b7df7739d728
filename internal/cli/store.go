package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/adrg/xdg"
	"golang.org/x/term"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/internal/private"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/sqlite"
)

const defaultStoreText = "$XDG_DATA_HOME/stet"

// storePlace returns the location of the store: the flag, the environment, or the
// default.
func (a *app) storePlace() string {
	for _, place := range []string{a.store, os.Getenv("STET_STORE")} {
		if place != "" {
			return place
		}
	}
	return filepath.Join(xdg.DataHome, "stet")
}

// storeDir is storePlace for verbs that work only on a local directory.
func (a *app) storeDir() (string, error) {
	place := a.storePlace()
	if dir, ok := strings.CutPrefix(place, "file://"); ok {
		return dir, nil
	}
	if u, err := url.Parse(place); err == nil && u.Scheme != "" && u.Host != "" {
		return "", usage(fmt.Errorf("this verb needs a local store, not %s://", u.Scheme))
	}
	return place, nil
}

// openStore opens the store for a verb. create means that a missing one is created;
// read-only verbs do not change the disk.
func (a *app) openStore(ctx context.Context, create bool) (*stet.DB, error) {
	switch place := a.storePlace(); {
	case a.copying.flag && (isRemote(place) || fleet.IsAddress(place)):
		return nil, usage(errors.New("--remote needs a store in a directory"))
	case isRemote(place):
		return a.openRemote(ctx, place)
	case fleet.IsAddress(place):
		return a.openFleetStore(ctx)
	case a.blobs != "":
		return nil, usage(errors.New("--blobs needs a store in a database: --store postgres://…"))
	}
	dir, err := a.storeDir()
	if err != nil {
		return nil, err
	}
	if foreignStore(dir) {
		return nil, errForeign(dir)
	}
	opts, err := a.storeOptions()
	if err != nil {
		return nil, err
	}
	opts.SQLite, opts.Remote = &sqlite.Options{MustExist: !create, ReadIfFull: !create, ForgetLog: a.forgetLog, BusyTimeout: a.busy}, a.copies(dir)
	opts.SQLite.PageCache, opts.SQLite.MaxPending = int(a.cache), int(a.cache)
	opts.CacheBytes, opts.CompactManually = a.cache, a.compactLater
	if given := a.givenKey(); given != "" && !fileExists(filepath.Join(dir, stet.KeyringName)) {
		return nil, a.keyForNothing(ctx, dir, given)
	}
	db, err := stet.Open(ctx, dir, &opts)
	if !errors.Is(err, stet.ErrLocked) {
		return db, err
	}
	unlock, err := a.unlock(ctx, dir)
	if err != nil {
		return nil, err
	}
	opts.Unlock = &unlock
	return stet.Open(ctx, dir, &opts)
}

// keyForNothing explains why a key is refused for a store without a keyring.
func (a *app) keyForNothing(ctx context.Context, dir, given string) error {
	db, err := stet.Open(ctx, dir, &stet.Options{SQLite: &sqlite.Options{ReadOnly: true}})
	switch {
	case errors.Is(err, stet.ErrNoKeyring):
		return err // it is encrypted, but its keyring is lost
	case errors.Is(err, sqlite.ErrNoStore):
		return coded(ExitConflict, "%s gives a key, but there is no encrypted store at %s; create one with 'stet keys init', or omit the key", given, dir)
	case err != nil:
		return err
	}
	return errors.Join(coded(ExitConflict, "%s gives a key, but the store at %s is not encrypted; omit the key, or create another store with 'stet keys init'", given, dir), db.Close())
}

// openRemote uses a server's store.
func (a *app) openRemote(ctx context.Context, address string) (*stet.DB, error) {
	opts, err := a.storeOptions()
	if err != nil {
		return nil, err
	}
	c, err := a.dialRemote(ctx, address)
	if err != nil {
		return nil, err
	}
	blobs := c.Blobs()
	opts.Collect, opts.Lister, opts.Presigner = collectBy(c), blobs, remoteSigner{c.Agents()}
	return stet.NewRemote(blobs, c.Rows(), c.Close, &opts), nil
}

// dialRemote makes a first call at once, so that a wrong address or token fails here
// and not in the middle of a verb.
func (a *app) dialRemote(ctx context.Context, address string) (*client.Client, error) {
	token := os.Getenv("STET_TOKEN")
	if path := os.Getenv("STET_TOKEN_FILE"); token == "" && path != "" {
		data, err := private.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the token: %w", err)
		}
		token = strings.TrimSpace(string(data))
	}
	if token == "" {
		token = a.ownToken(address)
	}
	c, err := client.New(address, &client.Options{Token: token})
	if err != nil {
		return nil, usage(err)
	}
	if token != "" && client.Exposed(address) {
		fmt.Fprintf(os.Stderr, "stet: %s is on another machine and does not use TLS, so the token can be read on the network; use https\n", address)
	}
	if _, err := c.Blobs().Has(ctx, blob.ID{}); err != nil {
		if connect.CodeOf(err) == connect.CodeUnauthenticated {
			err = fmt.Errorf("%s requires a token: set STET_TOKEN_FILE or STET_TOKEN", address)
		}
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// withStore runs fn with an open store and closes it.
func (a *app) withStore(ctx context.Context, create bool, fn func(*stet.DB) error) error {
	db, err := a.openStore(ctx, create)
	if err != nil {
		return err
	}
	began := time.Now()
	a.shorten = shortener(ctx, db)
	err = fn(db)
	if err == nil {
		a.compactAfter(ctx, db, time.Since(began))
	}
	a.sendCopies(ctx, db)
	return errors.Join(err, db.Close())
}

// unlock finds the key of an encrypted store: the flag, the environment, the default
// key file, or a prompt on the terminal.
func (a *app) unlock(ctx context.Context, dir string) (keyring.Unlock, error) {
	if path := a.keyPath(); path != "" {
		return keyring.KeyFile(path), nil
	}
	if phrase := os.Getenv(a.keySources().phrase); phrase != "" {
		return keyring.Passphrase(phrase, nil), nil
	}
	if path := usualKeyFile(dir); fileExists(path) {
		return keyring.KeyFile(path), nil
	}
	a.asked = true
	phrase, err := a.askSecret(ctx, "Passphrase of "+dir+": ")
	if isCancelled(err) {
		return keyring.Unlock{}, err
	}
	if from := a.keySources(); err != nil {
		return keyring.Unlock{}, fmt.Errorf("%w: %spass %s, or set %s or %s", stet.ErrLocked, a.whichStore(dir), from.flag, from.file, from.phrase)
	}
	return keyring.Passphrase(phrase, nil), nil
}

// usualKeyFile is the default key file of a store: outside of the store, so that a
// copy of the store does not include its key.
func usualKeyFile(dir string) string {
	full, err := filepath.Abs(dir)
	if err != nil {
		full = dir
	}
	return filepath.Join(xdg.ConfigHome, "stet", "keys", url.PathEscape(full)+".key")
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// askSecret reads a line without showing it. An interrupt ends it at once and
// restores the echo of the terminal; the read itself continues until the process
// ends.
func (a *app) askSecret(ctx context.Context, prompt string) (string, error) {
	f, ok := a.in.(*os.File)
	if !ok || !isTerminal(a.in) || a.json {
		return "", errors.New("no terminal to prompt on")
	}
	if ctx.Err() != nil {
		return "", errInterrupted
	}
	fd := int(f.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(a.err, prompt)
	defer fmt.Fprintln(a.err)
	type answer struct {
		secret []byte
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		secret, err := term.ReadPassword(fd)
		answers <- answer{secret, err}
	}()
	select {
	case <-ctx.Done():
		return "", errors.Join(errInterrupted, term.Restore(fd, before))
	case got := <-answers:
		if got.err == nil && len(got.secret) == 0 {
			got.err = errors.New("empty passphrase")
		}
		return string(got.secret), got.err
	}
}
