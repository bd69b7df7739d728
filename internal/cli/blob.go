package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/osfile"
)

func (a *app) blobCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "blob",
		Short:   "Store and fetch content by its SHA-256",
		GroupID: groupPlumbing,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.blobPut(), a.blobGet(), a.blobList(), a.blobVerify())
	return cmd
}

func (a *app) blobPut() *cobra.Command {
	return &cobra.Command{
		Use:   "put FILE|-",
		Short: "Store a file's content and print its id",
		Long: `Store the content of FILE, or of standard input for "-", and print its id: the
SHA-256 of the content as 64 hexadecimal digits. Once the id is printed, the
content is durable. Large files are streamed. A damaged stored copy is repaired.`,
		Example: "  stet blob put report.pdf\n  tar c src | stet blob put -",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), true, func(db *stet.DB) error {
				return a.putFile(cmd.Context(), db.Blobs(), args[0])
			})
		},
	}
}

func (a *app) putFile(ctx context.Context, store blob.Store, name string) error {
	source, done, err := a.seekable(name)
	if err != nil {
		return err
	}
	defer done()
	sum := sha256.New()
	size, err := io.Copy(sum, source)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	id := blob.ID(sum.Sum(nil))
	stored, err := isSound(ctx, store, id)
	if err != nil {
		return err
	}
	if !stored {
		if _, err := source.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("read %s again: %w", name, err)
		}
		bar := a.progress("storing", size)
		reader := io.TeeReader(source, bar)
		if err := blob.PutFrom(ctx, store, id, reader, size); err != nil {
			if errors.Is(err, blob.ErrMismatch) {
				return fmt.Errorf("%s changed while it was read: %w", name, err)
			}
			return err
		}
		bar.Finish()
	}
	if err := store.Flush(ctx); err != nil {
		return err
	}
	return a.print(map[string]any{"schema": "stet.blob.v1", "id": id, "size": size, "new": !stored}, id.String()+"\n")
}

// isSound reports whether a blob is stored and can be read. A damaged one is stored
// again, which repairs it.
func isSound(ctx context.Context, store blob.Store, id blob.ID) (bool, error) {
	r, err := blob.Open(ctx, store, id)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		err = errors.Join(err, r.Close())
	}
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		return false, nil
	}
	return err == nil, err
}

// seekable opens a file, or copies standard input to a temporary one: content is read
// twice, once to hash it and once to store it.
func (a *app) seekable(name string) (*os.File, func(), error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		if info, err := f.Stat(); err == nil && info.IsDir() {
			f.Close()
			return nil, nil, usage(fmt.Errorf("%s is a directory", name))
		}
		return f, func() { f.Close() }, nil
	}
	f, err := os.CreateTemp("", "stet-put-*")
	if err != nil {
		return nil, nil, err
	}
	done := func() {
		f.Close()
		os.Remove(f.Name())
	}
	if _, err := io.Copy(f, a.in); err != nil {
		done()
		return nil, nil, fmt.Errorf("read standard input: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		done()
		return nil, nil, err
	}
	return f, done, nil
}

func (a *app) blobGet() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Print the content of a blob",
		Long: `Print the content of a blob to standard output, or write it to a file with -o.
The content is verified against the id: the output is exactly what was put in, or the
command fails with exit code 6.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := blob.ParseID(args[0])
			if err != nil {
				return usage(err)
			}
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				return a.getTo(cmd.Context(), db.Blobs(), id, output)
			})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file instead of standard output")
	return cmd
}

func (a *app) getTo(ctx context.Context, store blob.Store, id blob.ID, output string) error {
	r, err := blob.Open(ctx, store, id)
	if err != nil {
		return err
	}
	defer r.Close()
	if output == "" {
		_, err := io.Copy(a.out, r)
		return err
	}
	f, err := os.CreateTemp(".", ".stet-get-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, r)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return osfile.Rename(f.Name(), output) // only verified content gets the name
}

func (a *app) blobList() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the stored blobs: id, stored bytes and base",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				return db.List(cmd.Context(), blob.ID{}, func(info blob.Info) error {
					value := map[string]any{"schema": "stet.blob.v1", "id": info.ID, "stored": info.Stored}
					line := fmt.Sprintf("%s %10d", info.ID, info.Stored)
					if !info.Base.IsZero() {
						value["base"] = info.Base
						line += "  delta to " + info.Base.Short()
					}
					return a.print(value, line+"\n")
				})
			})
		},
	}
}

func (a *app) blobVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [ID…]",
		Short: "Read blobs and compare them with their ids",
		Long:  "Read the given blobs, or all of them, and compare each with its id. Damaged blobs are\nlisted on one line each, and the exit code is then 6.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ids := make([]blob.ID, len(args))
			for i, arg := range args {
				id, err := blob.ParseID(arg)
				if err != nil {
					return usage(fmt.Errorf("%q: %w", arg, err))
				}
				ids[i] = id
			}
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				return a.verify(cmd.Context(), db, ids)
			})
		},
	}
}

func (a *app) verify(ctx context.Context, db *stet.DB, ids []blob.ID) error {
	bar := a.progress("verifying", -1)
	var good, bad int64
	check := func(id blob.ID) error {
		bar.Add(1)
		err := readAll(ctx, db.Blobs(), id)
		if err == nil {
			good++
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		bad++
		_, code := Code(err)
		return a.print(map[string]any{"schema": "stet.damage.v1", "id": id, "kind": code, "message": err.Error()},
			fmt.Sprintf("%s: %v\n", id, err))
	}
	var err error
	if len(ids) > 0 {
		for _, id := range ids {
			if err = check(id); err != nil {
				break
			}
		}
	} else {
		err = db.List(ctx, blob.ID{}, func(info blob.Info) error { return check(info.ID) })
	}
	bar.Finish()
	if err != nil {
		return err
	}
	a.say("%s verified, %d damaged", plural(good, "blob"), bad)
	if bad > 0 {
		return silentExit{ExitDamage}
	}
	return nil
}

// readAll reads a blob to its end, where a mismatch is detected.
func readAll(ctx context.Context, store blob.Store, id blob.ID) error {
	r, err := blob.Open(ctx, store, id)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}
