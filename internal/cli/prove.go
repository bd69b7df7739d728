package cli

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/proof"
)

type proveFlags struct {
	key              string
	content, printed bool
}

func (a *app) proveCommand() *cobra.Command {
	var flags proveFlags
	cmd := &cobra.Command{
		Use:     "prove CONVERSATION|REF",
		Short:   "Write a signed proof of a conversation or checkpoint, for others to check",
		GroupID: groupMove,
		Long: `Write a proof to standard output: what the store holds of a conversation now, with its
saves, checkpoints and trees of files, signed with the key of the store. If you name a
checkpoint, the proof is about this checkpoint. 'stet verify' checks a proof without the
store; docs/format/proof.md describes the format, for other programs.

A proof has the names, modes and hashes of files, the titles and times of rows, and
hashes for everything else. --with-content adds the contents of all these files and of
the conversation. Purged content appears as the hash that it had.

stet creates the key when it is first needed. An encrypted store derives it from its
keyring; any other store keeps it in proof.key in its directory, which only you can read.
--key uses an Ed25519 key of OpenSSH without a passphrase instead, and is needed for a
server or a database without a keyring. Give the output of --public-key to those who check
your proofs. The time in a proof is that of this machine's clock.`,
		Example: "  stet prove 01JCX4 > talk.proof\n  stet prove --with-content c7 > c7.proof\n  stet prove --key ~/.ssh/id_ed25519 01JCX4 > talk.proof\n  stet prove --public-key",
		Args: func(cmd *cobra.Command, args []string) error {
			if flags.printed {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		ValidArgsFunction: a.completeConversations,
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.printed {
				return a.withStore(cmd.Context(), false, func(db *stet.DB) error { return a.publicKey(db, flags) })
			}
			return a.withView(cmd.Context(), func(p *place) error { return a.prove(cmd.Context(), p, args[0], flags) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.key, "key", "", "file with the Ed25519 key to sign with, instead of the store's")
	f.BoolVar(&flags.content, "with-content", false, "put the contents of files and of the conversation into the proof")
	f.BoolVar(&flags.printed, "public-key", false, "print the public key that checks proofs")
	return cmd
}

func (a *app) publicKey(db *stet.DB, flags proveFlags) error {
	key, err := a.proofKey(db, flags.key)
	if err != nil {
		return err
	}
	text := proof.FormatPublic(key.Public().(ed25519.PublicKey))
	return a.print(map[string]any{"schema": "stet.proof.key.v1", "key": text}, text+"\n")
}

// proofKey returns the key that signs proofs.
func (a *app) proofKey(db *stet.DB, file string) (ed25519.PrivateKey, error) {
	if file != "" {
		return proof.ReadKey(file)
	}
	dir, err := a.storeDir()
	if err != nil && db.Ring() == nil {
		return nil, usage(errors.New("this store has no key of its own; pass --key FILE"))
	}
	return proof.StoreKey(dir, db.Ring())
}

func (a *app) prove(ctx context.Context, p *place, ref string, flags proveFlags) error {
	about, err := a.proofSubject(ctx, p, ref)
	if err != nil {
		return err
	}
	key, err := a.proofKey(p.db, flags.key)
	if err != nil {
		return err
	}
	return proof.Write(ctx, a.out, proof.Stores{Blobs: p.db.Blobs(), Rows: p.db.Rows()}, about, key, &proof.Options{Contents: flags.content})
}

// proofSubject finds what a reference names, as 'stet show' does.
func (a *app) proofSubject(ctx context.Context, p *place, ref string) (proof.Subject, error) {
	about, err := a.subject(ctx, p, ref)
	switch {
	case err != nil:
		return proof.Subject{}, err
	case about.conversation != "":
		return proof.Subject{Conversation: about.conversation}, nil
	case about.checkpoint == nil:
		return proof.Subject{}, usage(fmt.Errorf("%q is the working tree, which is not saved yet; run 'stet checkpoint' first", ref))
	}
	return proof.Subject{Checkpoint: about.checkpoint.ID}, nil
}
