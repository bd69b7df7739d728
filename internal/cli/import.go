package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/foreign/agents"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	"github.com/stet-dev/stet/internal/private"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/sqlite"
)

type importFlags struct {
	from                 string
	dryRun, rescue, sure bool
	again, purged        bool
	selected             *selection
	only                 []string
	keyFile              string
}

func (a *app) importCommand() *cobra.Command {
	var flags importFlags
	cmd := &cobra.Command{
		Use:     "import --from AGENT [PATH]",
		Short:   "Import conversations of another program",
		GroupID: groupMove,
		Long: `Import conversations, their states, messages and checkpoints into the store. The
source is only read, even while the other program uses it. Ids are kept, so a second
import adds only what is new. Damaged parts are skipped and listed, and the exit code
is then 6; an import never leaves an incomplete state.

For a coding agent, PATH is a session. Without PATH, stet asks and then imports all its
sessions: prompts, replies, thinking, tool calls, models and tokens become turns of a
conversation, and the raw record is stored beside them. A text of more than 1 MiB is
shortened in its turn; the raw record has all of it. A line of a record with more than
8 MiB besides such texts is skipped and listed; the raw record has it, too. Imported
content is compressed in the background.

Of an agent's session whose conversation was removed here, or of which content was purged, only
turns that began later are copied, without the raw record. The output counts the sessions
that have none. --again copies removed ones from the beginning. After a purge that would
bring the content back if the agent's record has it, and also needs --purged. Such
conversations of cursor are left alone as a whole.

For cursor, PATH is a state.vscdb, a store.db, the directory of an SDK store, or the
directory above such directories. Without PATH, stet searches the usual locations and
asks before it imports.`,
		Example: "  stet import --from " + agents.Names()[0] + "\n  stet import --from cursor\n  stet import --from cursor ~/.config/Cursor/User/globalStorage/state.vscdb",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.purged && !flags.again {
				return usage(errors.New("--purged needs --again"))
			}
			if flags.from != agents.Cursor {
				return a.importAgent(cmd.Context(), args, flags)
			}
			if len(args) == 0 {
				found, err := a.sources(cmd.Context(), flags.sure)
				if err != nil {
					return err
				}
				args = found
			}
			if inside := cursor.Inside(args[0]); len(args) == 1 && len(inside) > 0 && !cursor.IsStore(args[0]) {
				args = inside // the directory above stores of the SDK
			}
			return a.importPaths(cmd.Context(), args, flags)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.from, "from", agents.Cursor, "source program: "+strings.Join(agents.Importable(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(agents.Importable(), cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&flags.dryRun, "dry-run", false, "read and count, write nothing")
	f.BoolVar(&flags.rescue, "rescue", false, "read the readable part of a truncated file")
	f.BoolVarP(&flags.sure, "yes", "y", false, "do not ask before importing what was found")
	f.BoolVar(&flags.again, "again", false, "also copy sessions whose conversations were removed here")
	f.BoolVar(&flags.purged, "purged", false, "with --again, also those of which content was purged here")
	f.StringVar(&flags.keyFile, "blob-key-file", "", "file with the key of the source's encrypted blobs (cursor)")
	f.StringArrayVar(&flags.only, "only", nil, "import only this conversation, by id or prefix (may be repeated)")
	return cmd
}

// importPaths imports stores, one after another. A dry run creates no store: if there
// is none, everything is new.
func (a *app) importPaths(ctx context.Context, paths []string, flags importFlags) error {
	damaged := 0
	flags.selected = &selection{}
	run := func(dst cursorimport.Target) error {
		for _, path := range paths {
			n, err := a.importPath(ctx, dst, path, flags)
			if damaged += n; err != nil {
				return err
			}
		}
		return nil
	}
	err := a.withStore(ctx, !flags.dryRun, func(db *stet.DB) error {
		if err := run(cursorimport.Target{Blobs: db.Blobs(), Rows: db.Rows()}); err != nil || flags.dryRun {
			return err
		}
		return a.compact(ctx, db)
	})
	if flags.dryRun && errors.Is(err, sqlite.ErrNoStore) {
		none := memblob.New()
		err = run(cursorimport.Target{Blobs: none, Rows: memkv.New(none)})
	}
	if err == nil && damaged > 0 {
		return silentExit{ExitDamage}
	}
	if s := flags.selected; err == nil && s.wanted == 0 && s.others > 0 {
		return noneSelected(flags.only, plural(int64(s.others), "conversation"), agents.Cursor, paths)
	}
	return err
}

// selection counts the conversations that --only selects, and the others.
type selection struct{ wanted, others int }

// importPath imports one store and returns how much of it is damaged.
func (a *app) importPath(ctx context.Context, dst cursorimport.Target, path string, flags importFlags) (int, error) {
	opts := &cursor.Options{Rescue: flags.rescue}
	if flags.keyFile != "" {
		key, err := private.ReadFile(flags.keyFile)
		if err != nil {
			return 0, err
		}
		opts.Key = cursor.NewSecret(strings.TrimSpace(string(key)))
	}
	src, err := cursor.Open(ctx, path, opts)
	if err != nil {
		return 0, explainSource(err)
	}
	damaged, err := a.importFrom(ctx, dst, src, flags)
	return damaged, errors.Join(explainSource(err), src.Close())
}

// explainSource adds exit codes to errors of a source.
func explainSource(err error) error {
	switch {
	case errors.Is(err, cursor.ErrCorrupt), errors.Is(err, cursor.ErrTruncated):
		return coded(ExitDamage, "%w; --rescue reads the readable part", err)
	case errors.Is(err, cursor.ErrBusy):
		return coded(ExitBusy, "%w", err)
	case errors.Is(err, cursor.ErrNotFound):
		return coded(ExitNotFound, "%w", err)
	}
	return err
}

// sources finds what could be imported, and asks.
func (a *app) sources(ctx context.Context, sure bool) ([]string, error) {
	found := cursor.Find(nil)
	if len(found) == 0 {
		return nil, coded(ExitNotFound, "nothing found in %s; pass a PATH", strings.Join(cursor.Places(nil), ", "))
	}
	var paths []string
	for _, l := range found {
		paths = append(paths, l.Path)
		a.say("%s  %s  %s", padLeft(byteSize(l.Size), 10), printable(l.Path), printable(l.Workspace))
	}
	return paths, a.agreed(ctx, sure, fmt.Sprintf("Import %s?", plural(int64(len(paths)), "store")))
}

type importJSON struct {
	Schema        string        `json:"schema"`
	DryRun        bool          `json:"dry_run"`
	Conversations int           `json:"conversations"`
	Messages      int           `json:"messages"`
	Blobs         int64         `json:"blobs"`
	Bytes         int64         `json:"bytes"`
	Checkpoints   int           `json:"checkpoints"`
	Agents        int           `json:"agents"`
	Damaged       int           `json:"damaged"`
	Skipped       []skippedJSON `json:"skipped"`
}

type skippedJSON struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
	Damage bool   `json:"damage"`
}

func (a *app) importFrom(ctx context.Context, dst cursorimport.Target, src *cursor.Store, flags importFlags) (int, error) {
	bar := a.progress("importing", -1)
	opts := &cursorimport.Options{DryRun: flags.dryRun, Again: flags.again, Purged: flags.purged, Progress: func(p cursorimport.Progress) {
		if p.Total > 0 && bar.GetMax() != p.Total {
			bar.ChangeMax(p.Total)
		}
		_ = bar.Set(p.Done) // display only
	}}
	if len(flags.only) > 0 {
		opts.Conversations = func(h cursor.Header) bool {
			for _, prefix := range flags.only {
				if strings.HasPrefix(h.ID, prefix) {
					flags.selected.wanted++
					return true
				}
			}
			flags.selected.others++
			return false
		}
	}
	result, err := cursorimport.Import(ctx, src, dst, opts)
	_ = bar.Finish()
	value := importJSON{
		Schema: "stet.import.v1", DryRun: flags.dryRun, Conversations: result.Conversations, Messages: result.Messages,
		Blobs: result.Blobs, Bytes: result.Bytes, Checkpoints: result.Checkpoints, Agents: result.Agents,
		Damaged: result.Damaged(), Skipped: []skippedJSON{},
	}
	for _, s := range result.Skipped {
		value.Skipped = append(value.Skipped, skippedJSON{s.Key, s.Reason, s.Damage})
	}
	return result.Damaged(), errors.Join(err, a.print(value, a.importText(value)))
}

func (a *app) importText(v importJSON) string {
	p := a.paint()
	verb := "imported"
	if v.DryRun {
		verb = "would import"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s with %s and %s, ", verb, plural(int64(v.Conversations), "conversation"),
		plural(int64(v.Messages), "message"), plural(int64(v.Checkpoints), "checkpoint"))
	if v.Agents > 0 {
		fmt.Fprintf(&text, "%s, ", plural(int64(v.Agents), "cloud agent"))
	}
	fmt.Fprintf(&text, "%s (%s)\n", plural(v.Blobs, "blob"), byteSize(v.Bytes))
	for _, s := range v.Skipped {
		mark := p.dim("skipped")
		if s.Damage {
			mark = p.red("damaged")
		}
		fmt.Fprintf(&text, "%s  %s: %s\n", mark, printable(s.Key), printable(s.Reason))
	}
	return text.String()
}
