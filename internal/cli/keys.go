package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/sqlite"
)

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "keys",
		Short:   "Encrypt a store, list, rotate and prune its keys",
		GroupID: groupHouse,
		Long: `An encrypted store seals everything with AES-256-GCM under data keys. Your own key, a
key file or a passphrase, wraps the data keys. Without it, nothing is readable, and
stored names do not reveal whether the store has a known content. If you lose the key,
you lose the content; there is no back door.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.keysInit(), a.keysList(), a.keysRotate(), a.keysPrune())
	return cmd
}

func (a *app) keysInit() *cobra.Command {
	var passphrase bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Encrypt a new store",
		Long: `Encrypt a new, empty store. By default a random key file is created outside of
the store, where later commands find it; --key-file names another place (an
existing file there is used). --passphrase asks for a passphrase instead, or takes it
from STET_PASSPHRASE. The keys of a store in a database are written to the file that
the setting keyring (STET_KEYRING) names; give each node a copy.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fleet.IsAddress(a.storePlace()) {
				return a.initFleetKeys(cmd.Context(), passphrase)
			}
			dir, err := a.storeDir()
			if err != nil {
				return err
			}
			return a.initKeys(cmd.Context(), dir, passphrase)
		},
	}
	cmd.Flags().BoolVar(&passphrase, "passphrase", false, "protect the keys with a passphrase instead of a key file")
	return cmd
}

func (a *app) initKeys(ctx context.Context, dir string, passphrase bool) error {
	path := filepath.Join(dir, stet.KeyringName)
	if fileExists(path) {
		return coded(ExitConflict, "%s is already encrypted; 'stet keys list' lists its keys, 'stet keys rotate' changes them", dir)
	}
	db, err := stet.Open(ctx, dir, nil)
	if err != nil {
		return err // also if it is encrypted and lost its keyring
	}
	empty, err := isEmpty(ctx, db.Engine())
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if !empty {
		return coded(ExitConflict, "%s holds unencrypted data; create a new store with keys and copy the data there with 'stet push'", dir)
	}
	unlock, err := a.newUnlock(ctx, dir, passphrase)
	if err != nil {
		return err
	}
	return a.createRing(dir, path, unlock, func() error {
		db, err := stet.Open(ctx, dir, &stet.Options{Unlock: &unlock.Unlock})
		if err != nil {
			return err
		}
		return db.Close()
	})
}

// createRing creates the keyring of a store. mark then marks the store as encrypted.
func (a *app) createRing(store, path string, unlock newKey, mark func() error) error {
	ring, err := keyring.Create(path, unlock.Unlock)
	if err != nil {
		unlock.discard()
	}
	if errors.Is(err, os.ErrExist) {
		return coded(ExitConflict, "%s is already encrypted", store)
	}
	if err != nil {
		return err
	}
	if err := mark(); err != nil {
		return err
	}
	key, err := ring.Active()
	if err != nil {
		return err
	}
	a.say("%s is now encrypted; its keys are protected by %s. Keep that safe: without it nothing can be read.", store, unlock.about)
	return a.print(map[string]any{"schema": "stet.key.v1", "id": key.ID().String(), "active": true}, key.ID().String()+"\n")
}

// isEmpty reports whether a store holds neither blobs nor rows.
func isEmpty(ctx context.Context, engine *sqlite.DB) (bool, error) {
	err := engine.Blobs().List(ctx, blob.ID{}, func(blob.Info) error { return io.EOF })
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, err := range engine.Rows().Scan(ctx, kv.Range{}, kv.ScanOptions{Limit: 1, KeysOnly: true}) {
		return false, err
	}
	return true, nil
}

// newKey is the key of a new keyring.
type newKey struct {
	keyring.Unlock
	about string // for people
	made  string // the key file, if it was created here
}

// discard removes an unused key file.
func (k newKey) discard() {
	if k.made != "" {
		os.Remove(k.made) // harmless; the first error counts
	}
}

func (a *app) newUnlock(ctx context.Context, dir string, passphrase bool) (newKey, error) {
	if passphrase {
		phrase := os.Getenv("STET_PASSPHRASE")
		if phrase == "" {
			var err error
			if phrase, err = a.askTwice(ctx); isCancelled(err) {
				return newKey{}, err
			} else if err != nil {
				return newKey{}, usage(fmt.Errorf("%w; set STET_PASSPHRASE", err))
			}
		}
		return newKey{Unlock: keyring.Passphrase(phrase, nil), about: "your passphrase"}, nil
	}
	path := a.keyPath()
	if path == "" {
		path = usualKeyFile(dir)
	}
	key := newKey{Unlock: keyring.KeyFile(path), about: "the key file " + path}
	if !fileExists(path) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return newKey{}, err
		}
		if err := keyring.GenerateKeyFile(path); err != nil {
			return newKey{}, err
		}
		key.made = path
	}
	return key, nil
}

func (a *app) askTwice(ctx context.Context) (string, error) {
	first, err := a.askSecret(ctx, "New passphrase: ")
	if err != nil {
		return "", err
	}
	second, err := a.askSecret(ctx, "Repeat passphrase: ")
	if err == nil && first != second {
		err = errors.New("the passphrases do not match")
	}
	return first, err
}

func (a *app) keysList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the data keys, without their secrets",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withRing(cmd.Context(), func(_ *stet.DB, ring *keyring.Ring) error { return a.printKeys(ring) })
		},
	}
}

// withRing opens an encrypted store.
func (a *app) withRing(ctx context.Context, fn func(*stet.DB, *keyring.Ring) error) error {
	if place := a.storePlace(); isRemote(place) {
		return coded(ExitUsage, "keys never leave their machine: run this on the server of %s, with the directory of its store", place)
	}
	return a.withStore(ctx, false, func(db *stet.DB) error {
		if db.Ring() == nil {
			return coded(ExitNotFound, "the store is not encrypted; see 'stet keys init'")
		}
		return fn(db, db.Ring())
	})
}

func (a *app) printKeys(ring *keyring.Ring) error {
	for _, k := range ring.List() {
		status := "read-only"
		if k.Active {
			status = "active"
		}
		value := map[string]any{"schema": "stet.key.v1", "id": k.ID.String(), "created": k.Created.UTC(), "active": k.Active}
		if err := a.print(value, fmt.Sprintf("%s  %s  %s\n", k.ID, k.Created.Local().Format("2006-01-02 15:04"), status)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) keysRotate() *cobra.Command {
	var reencrypt, newPassphrase bool
	var newKeyFile string
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Use a new data key from now on",
		Long: `Use a new data key for all writes from now on; older keys still read what they
sealed. --reencrypt reseals everything that an older key sealed; you may interrupt it,
and another run continues it. --new-key-file and --new-passphrase change only your own
key: the data keys are wrapped again, which takes the same time for a large store as
for a small one.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withRing(cmd.Context(), func(db *stet.DB, ring *keyring.Ring) error {
				if newKeyFile != "" || newPassphrase {
					return a.rewrap(cmd.Context(), ring, newKeyFile, newPassphrase)
				}
				if err := ring.Rotate(); err != nil {
					return err
				}
				if reencrypt {
					bar := a.progress("re-encrypting", -1)
					if err := db.Reencrypt(cmd.Context(), func() { bar.Add(1) }); err != nil {
						return err
					}
					bar.Finish()
				}
				return a.printKeys(ring)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&reencrypt, "reencrypt", false, "reseal everything with the new key")
	flags.StringVar(&newKeyFile, "new-key-file", "", "protect the data keys with this key file from now on (created if missing)")
	flags.BoolVar(&newPassphrase, "new-passphrase", false, "protect the data keys with a new passphrase from now on (env STET_NEW_PASSPHRASE)")
	exclude(cmd, "reencrypt", "new-key-file", "new-passphrase")
	return cmd
}

func (a *app) keysPrune() *cobra.Command {
	return &cobra.Command{
		Use:   "prune",
		Short: "Remove unused data keys",
		Long: `Remove retired data keys from the keyring, after 'stet keys rotate
--reencrypt' resealed everything. stet checks the whole store first: if a blob, a row
or an archived conversation needs one of these keys, nothing is removed (exit code 4).
Other processes that use the store must end first (exit code 7), because those that
began before the rotation still seal with the old key. Copies of the old keyring and
copies of the store are not affected.`,
		Example: "  stet keys rotate --reencrypt && stet keys prune",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.pruneKeys(cmd.Context()) },
	}
}

func (a *app) pruneKeys(ctx context.Context) error {
	if place := a.storePlace(); isRemote(place) || fleet.IsAddress(place) {
		return usage(errors.New("only the keys of a local store can be pruned: other nodes of a fleet may still seal with old keys"))
	}
	dir, err := a.storeDir()
	if err != nil {
		return err
	}
	if !fileExists(filepath.Join(dir, stet.KeyringName)) {
		return a.withRing(ctx, func(*stet.DB, *keyring.Ring) error { return nil }) // reports what is wrong
	}
	unlock, err := a.unlock(ctx, dir)
	if err != nil {
		return err
	}
	result, err := stet.PruneKeys(ctx, dir, unlock)
	switch {
	case errors.Is(err, stet.ErrKeyInUse):
		return coded(ExitConflict, "%w; run 'stet keys rotate --reencrypt' first", err)
	case errors.Is(err, kv.ErrBusy):
		return fmt.Errorf("%w; stop it and run again", err)
	case err != nil:
		return err
	}
	if result.Unreadable > 0 {
		a.warn("%s cannot be read with any key; see 'stet fsck'", plural(result.Unreadable, "stored part"))
	}
	if len(result.Removed) == 0 {
		a.say("no keys to remove")
	}
	for _, id := range result.Removed {
		if err := a.print(map[string]any{"schema": "stet.key.v1", "id": id.String(), "removed": true}, fmt.Sprintf("%s  removed\n", id)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) rewrap(ctx context.Context, ring *keyring.Ring, path string, passphrase bool) error {
	if !passphrase {
		if !fileExists(path) {
			if err := keyring.GenerateKeyFile(path); err != nil {
				return err
			}
		}
		return ring.Rewrap(keyring.KeyFile(path))
	}
	phrase := os.Getenv("STET_NEW_PASSPHRASE")
	if phrase == "" {
		var err error
		if phrase, err = a.askTwice(ctx); isCancelled(err) {
			return err
		} else if err != nil {
			return usage(fmt.Errorf("%w; set STET_NEW_PASSPHRASE", err))
		}
	}
	return ring.Rewrap(keyring.Passphrase(phrase, nil))
}
