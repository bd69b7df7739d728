package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/fleet"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/transfer"
)

// moveFlags are those of push and pull.
type moveFlags struct {
	force, dryRun, plain, all bool
	remoteKey                 string
}

func (f *moveFlags) add(cmd *cobra.Command, force string) {
	flags := cmd.Flags()
	flags.BoolVar(&f.force, "force", false, "if both sides were continued, "+force+" and keep its own saves as a branch")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be copied, copy nothing")
	flags.BoolVar(&f.plain, "decrypt", false, "allow copying an encrypted store into an unencrypted one")
	flags.BoolVar(&f.all, "all", false, "copy everything, for a backup, including agents, pins, the log of operations and other checkpoints")
	flags.StringVar(&f.remoteKey, "remote-key-file", "", "key file of REMOTE, if that is encrypted (env STET_REMOTE_KEY_FILE)")
}

const moveHelp = `REMOTE is a directory with a store, or the http(s) address of a server. A server needs
a token (STET_TOKEN_FILE or STET_TOKEN): with the write scope to push, and with the
admin scope for --all. Only blobs that the receiving side lacks are sent. Each save and each
checkpoint becomes visible once all of it is durable. After an interruption, run the
command again: it resumes.

A conversation that was continued on both sides has diverged. It is left alone, and the
exit code is 4. With --force, the receiving side takes the saves of the other one, and its
own stay in its history as a branch ('stet log' shows it, 'stet fork' continues it).

Two directories with the same keys exchange sealed blobs unchanged. Otherwise, each side
seals with its own keys. Data of an encrypted store is written to an unencrypted one
only with --decrypt.

--key-file, STET_KEY_FILE and STET_PASSPHRASE are the key of this store. That of REMOTE is
--remote-key-file, STET_REMOTE_KEY_FILE or STET_REMOTE_PASSPHRASE.

A conversation is copied with its checkpoints, including the JSON checkpoints and sources
of an import. --all, without names, also copies everything else: agents with their logs,
pins, the log of operations, and checkpoints without a conversation. Data that differs on
the receiving side, such as a title, is not replaced, and the command names it.`

func (a *app) pushCommand() *cobra.Command {
	var flags moveFlags
	cmd := &cobra.Command{
		Use:     "push REMOTE [CONVERSATION…]",
		Short:   "Send conversations and checkpoints to another store",
		GroupID: groupMove,
		Long:    "Send conversations and their checkpoints to another store. Without CONVERSATION, all\nconversations are sent.\n\n" + moveHelp,
		Example: "  stet push /mnt/backup/stet\n  stet push https://stet.example 01JCX4",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.move(cmd.Context(), "push", args, flags)
		},
	}
	flags.add(cmd, "let REMOTE continue from the saves of this store")
	return cmd
}

func (a *app) pullCommand() *cobra.Command {
	var flags moveFlags
	cmd := &cobra.Command{
		Use:     "pull REMOTE [CONVERSATION…]",
		Short:   "Fetch conversations and checkpoints from another store",
		GroupID: groupMove,
		Long:    "Fetch conversations and their checkpoints from another store. Without CONVERSATION,\nall conversations are fetched.\n\n" + moveHelp,
		Example: "  stet pull /mnt/backup/stet\n  stet pull http://127.0.0.1:7717 01JCX4 --dry-run",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.move(cmd.Context(), "pull", args, flags)
		},
	}
	flags.add(cmd, "let this store continue from the saves of REMOTE")
	return cmd
}

// move opens both stores and moves in the direction of the verb.
func (a *app) move(ctx context.Context, verb string, args []string, flags moveFlags) error {
	push := verb == "push"
	remote := &app{in: a.in, out: a.out, err: a.err, store: args[0], json: a.json, quiet: a.quiet, keyFile: flags.remoteKey, otherSide: true, config: a.config}
	if fleet.IsAddress(args[0]) {
		remote.bucket, remote.tenant, remote.keyring = a.bucket, a.tenant, a.keyring
	}
	switch same, err := samePlace(a.storePlace(), args[0]); {
	case err != nil:
		return err
	case same:
		return usage(errors.New("REMOTE is this store"))
	}
	if isRemote(args[0]) && !isRemote(a.storePlace()) && !flags.all && !flags.dryRun {
		return a.moveOverWire(ctx, verb, args[0], args[1:], flags)
	}
	// What may not exist is opened first, and nothing is created if it does not.
	both := func(fn func(here, there *stet.DB) error) error {
		if push {
			return a.withStore(ctx, false, func(here *stet.DB) error {
				return remote.withStore(ctx, true, func(there *stet.DB) error { return fn(here, there) })
			})
		}
		absent := true
		err := remote.withStore(ctx, false, func(there *stet.DB) error {
			absent = false
			return a.withStore(ctx, true, func(here *stet.DB) error { return fn(here, there) })
		})
		if absent && errors.Is(err, sqlite.ErrNoStore) {
			return coded(ExitNotFound, "no store at %s to pull from", shown(args[0]))
		}
		return err
	}
	return both(func(here, there *stet.DB) error {
		local, err := a.side(ctx, here)
		if err != nil {
			return err
		}
		other, err := remote.side(ctx, there)
		if err != nil {
			return err
		}
		from, to, source := local, other, here
		if !push {
			from, to, source = other, local, there
		}
		ids, err := namedConversations(ctx, source, args[1:])
		if err != nil {
			return err
		}
		return a.transfer(ctx, verb, from, to, ids, flags)
	})
}

// samePlace reports whether two places are the same directory.
func samePlace(a, b string) (bool, error) {
	if a == b {
		return true, nil
	}
	if isRemote(a) || isRemote(b) || fleet.IsAddress(a) || fleet.IsAddress(b) {
		return false, nil
	}
	return sameFile(strings.TrimPrefix(a, "file://"), strings.TrimPrefix(b, "file://"))
}

// side returns a store as one side of a transfer.
func (a *app) side(ctx context.Context, db *stet.DB) (transfer.Side, error) {
	s := transfer.Side{Blobs: db.Blobs(), Rows: db.Rows(), Encrypted: db.Ring() != nil}
	if !isRemote(a.storePlace()) {
		if kept := db.Stored(); kept != nil {
			s.Stored = kept
		}
		return s, nil
	}
	c, err := a.dialRemote(ctx, a.storePlace())
	if err != nil {
		return s, err
	}
	s.Encrypted, err = encryptedThere(ctx, c)
	return s, errors.Join(err, c.Close())
}

// encryptedThere asks whether the store of a server is encrypted.
func encryptedThere(ctx context.Context, c *client.Client) (bool, error) {
	info, err := c.Store().Info(ctx, &stetv1.StoreInfoRequest{})
	if err != nil {
		return false, fmt.Errorf("query the server's store: %w", err)
	}
	return info.GetEncrypted(), nil
}

func namedConversations(ctx context.Context, db *stet.DB, names []string) ([]string, error) {
	var ids []string
	for _, name := range names {
		id, err := conversationID(ctx, db, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

type movedJSON struct {
	ID          string          `json:"id"`
	Title       string          `json:"title"`
	TitleThere  string          `json:"title_there,omitempty"`
	Status      transfer.Status `json:"status"`
	Saves       int             `json:"saves"`
	Checkpoints int             `json:"checkpoints"`
	Rows        int             `json:"rows"`
	Error       string          `json:"error,omitempty"`
}

type moveJSON struct {
	Schema        string      `json:"schema"`
	DryRun        bool        `json:"dry_run"`
	Conversations []movedJSON `json:"conversations"`
	Blobs         int         `json:"blobs"`
	Bytes         int64       `json:"bytes"`
	Checkpoints   int         `json:"checkpoints"`
	Agents        int         `json:"agents"`
	Pins          int         `json:"pins"`
	Operations    int         `json:"operations"`
	Left          []string    `json:"left,omitempty"`
	Missing       int         `json:"missing,omitempty"`
}

func (a *app) transfer(ctx context.Context, verb string, from, to transfer.Side, ids []string, flags moveFlags) error {
	sent := a.counter("moving blobs:")
	report, err := transfer.Run(ctx, from, to, ids, &transfer.Options{
		Force: flags.force, DryRun: flags.dryRun, AllowPlain: flags.plain, Everything: flags.all,
		Progress: func(r transfer.Report) { sent.set(int64(r.Blobs)) },
	})
	sent.done()
	return a.transferred(verb, report, flags, err)
}

// transferred prints the result of a transfer.
func (a *app) transferred(verb string, report *transfer.Report, flags moveFlags, err error) error {
	var failed *transfer.FailedError
	if errors.As(err, &failed) {
		return a.moved(verb, report, flags, failed)
	}
	switch {
	case errors.Is(err, transfer.ErrNotAll):
		return usage(errors.New("--all copies everything; do not name conversations"))
	case errors.Is(err, transfer.ErrPlain):
		return coded(ExitUsage, "%w: nothing was copied; encrypt the target ('stet keys init'), or pass --decrypt", err)
	case err != nil:
		a.say("%s copied; run again to resume", plural(int64(report.Blobs), "blob"))
		return err
	}
	return a.moved(verb, report, flags, nil)
}

// moved prints what was copied and what was not.
func (a *app) moved(verb string, report *transfer.Report, flags moveFlags, failed *transfer.FailedError) error {
	value := moveJSON{Schema: "stet." + verb + ".v1", DryRun: flags.dryRun, Conversations: []movedJSON{}, Blobs: report.Blobs, Bytes: report.Bytes,
		Checkpoints: report.Checkpoints, Agents: report.Agents, Pins: report.Pins, Operations: report.Operations,
		Left: report.Left, Missing: report.Missing}
	for _, c := range report.Conversations {
		one := movedJSON{ID: c.ID, Title: c.Title, TitleThere: c.TitleThere, Status: c.Status, Saves: c.Saves, Checkpoints: c.Checkpoints, Rows: c.Rows}
		if c.Err != nil {
			one.Error = c.Err.Error()
		}
		value.Conversations = append(value.Conversations, one)
	}
	if err := a.print(value, moveText(value)); err != nil {
		return err
	}
	if failed != nil {
		return notMoved(failed)
	}
	if diverged := report.Diverged(); len(diverged) > 0 {
		return coded(ExitConflict, "%s were continued on both sides and left unchanged: %s; --force takes this head and keeps the other as a branch",
			plural(int64(len(diverged)), "conversation"), few(diverged, 5))
	}
	return nil
}

// notMoved lists the conversations that failed, with the code of the worst error.
func notMoved(failed *transfer.FailedError) error {
	code, hint := ExitConflict, "run again"
	for _, err := range failed.Errs {
		switch {
		case errors.Is(err, transfer.ErrChanged):
		case errors.Is(err, transfer.ErrNotFound) && code != ExitDamage:
			code, hint = ExitNotFound, "'stet ls' lists all"
		case !errors.Is(err, transfer.ErrNotFound):
			code, hint = ExitDamage, "run 'stet fsck' on both sides"
		}
	}
	return coded(code, "%d not copied: %w; %s", len(failed.Errs), failed, hint)
}

func moveText(v moveJSON) string {
	var text strings.Builder
	for _, c := range v.Conversations {
		fmt.Fprintf(&text, "%-8s  %s  %s", c.Status, printable(c.ID), printable(c.Title))
		if c.Saves > 0 || c.Checkpoints > 0 {
			fmt.Fprintf(&text, "  (%s, %s)", plural(int64(c.Saves), "save"), plural(int64(c.Checkpoints), "checkpoint"))
		}
		text.WriteByte('\n')
		if c.TitleThere != "" {
			fmt.Fprintf(&text, "left      the title of %s on the receiving side: %q\n", printable(c.ID), printable(c.TitleThere))
		}
	}
	if n := v.Checkpoints + v.Agents + v.Pins + v.Operations; n > 0 {
		fmt.Fprintf(&text, "also      %s, %s, %s, %s\n", plural(int64(v.Checkpoints), "checkpoint"), plural(int64(v.Agents), "agent"),
			plural(int64(v.Pins), "pin"), plural(int64(v.Operations), "operation"))
	}
	for _, what := range v.Left {
		fmt.Fprintf(&text, "left      %s\n", printable(what))
	}
	if v.Missing > 0 {
		fmt.Fprintf(&text, "missing   %s that rows refer to but the source lacks; 'stet fsck' lists them\n", plural(int64(v.Missing), "blob"))
	}
	if v.DryRun {
		fmt.Fprintf(&text, "would copy %s\n", plural(int64(v.Blobs), "blob"))
	} else {
		fmt.Fprintf(&text, "copied %s (%s)\n", plural(int64(v.Blobs), "blob"), byteSize(v.Bytes))
	}
	return text.String()
}

// sameFile reports whether two paths name the same directory; a missing one is not
// the same.
func sameFile(a, b string) (bool, error) {
	one, err := os.Stat(a)
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.Clean(a) == filepath.Clean(b), nil
	}
	if err != nil {
		return false, err
	}
	other, err := os.Stat(b)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(one, other), err
}
