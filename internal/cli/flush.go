package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/mirror"
)

func (a *app) flushCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "flush",
		Short:   "Send missing blobs to the remote",
		GroupID: groupMove,
		Long: `Send every missing blob to the remote (remote.url, or --remote), however long it takes.
You need not run it: each command sends waiting blobs at its end, for up to
remote.wait_ms, and a server sends all the time.

Only blobs are copied. A blob that this store lost is fetched back from the remote
when it is read. Use 'stet push' to copy whole histories to another store.`,
		Example: "  stet config set remote.url https://stet.example\n  stet flush",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error { return a.flush(cmd.Context(), db, all) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "ask the remote for every blob again, in case it was restored or emptied")
	return cmd
}

type flushJSON struct {
	Schema  string `json:"schema"`
	URL     string `json:"url"`
	Looked  int    `json:"looked_at"`
	Blobs   int    `json:"blobs"`
	Bytes   int64  `json:"bytes"`
	Damaged int    `json:"damaged"`
}

func (a *app) flush(ctx context.Context, db *stet.DB, all bool) error {
	m := db.Mirror()
	if m == nil {
		return usage(errors.New("no remote is set; set one with 'stet config set remote.url URL', or pass --remote"))
	}
	a.copying.silent = true
	looked := a.counter("sending blobs:")
	sent, err := m.Send(ctx, &mirror.SendOptions{All: all, Progress: func(s mirror.Sent) { looked.set(int64(s.Looked)) }})
	looked.done()
	if err != nil {
		if ctx.Err() == nil {
			a.say("%s for %s", waiting(ctx, m), shown(m.Name()))
		}
		return fmt.Errorf("send to %s: %w", shown(m.Name()), err)
	}
	value := flushJSON{Schema: "stet.flush.v1", URL: shown(m.Name()), Looked: sent.Looked, Blobs: sent.Blobs, Bytes: sent.Bytes, Damaged: sent.Damaged}
	text := fmt.Sprintf("%s is up to date; sent %s (%s)\n", value.URL, plural(int64(sent.Blobs), "blob"), byteSize(sent.Bytes))
	if err := a.print(value, text); err != nil {
		return err
	}
	if sent.Damaged > 0 {
		return coded(ExitDamage, "%s cannot be read here and were not sent; run 'stet fsck'", plural(int64(sent.Damaged), "blob"))
	}
	return nil
}
