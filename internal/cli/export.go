package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/internal/osfile"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/transcript"
)

type exportFlags struct {
	format, output, at, turns, base string
	light, lenient, all             bool
}

func (a *app) exportCommand() *cobra.Command {
	var flags exportFlags
	cmd := &cobra.Command{
		Use:     "export CONVERSATION…",
		Short:   "Write a conversation as Markdown, HTML, JSON, JSON lines or for the Cursor editor",
		GroupID: groupMove,
		Long: `Write a conversation for people or other programs, to standard output or, with -o,
to a file whose extension selects the format. HTML is a single page that loads nothing;
text of agents and tools in it can neither run code nor reach the network.

--at selects an earlier state: a checkpoint, a message, or a root. --turns selects some
of the turns, such as 3-5, or -10 for the last ten. --store may name a state.vscdb or
store.db, which is read directly.

-o FILE.vscdb writes one or more conversations, or all with --all, to a new database of
the Cursor editor: states with their blobs, messages, checkpoints and cloud agents under
the editor's own keys. --base first copies an existing state.vscdb, and replaces these
conversations in the copy; the copy holds everything else that the base holds, including
sign-in secrets. An existing file is never changed. 'stet import' reads the same
conversations from the new database.`,
		Example: "  stet export 01JCX4 > talk.md\n  stet export 01JCX4 -o talk.html\n  stet export 01JCX4 --format jsonl --turns -10\n" +
			"  stet export --all -o copy.vscdb --base ~/.config/Cursor/User/globalStorage/state.vscdb",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeConversations,
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.editor() {
				return a.exportEditor(cmd.Context(), args, flags)
			}
			if len(args) != 1 || flags.all || flags.base != "" {
				return usage(errors.New("pass one CONVERSATION; several, --all and --base need -o FILE.vscdb"))
			}
			format, err := a.exportFormat(flags)
			if err != nil {
				return err
			}
			opts, err := exportOptions(flags)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			done, err := a.withForeign(ctx, func(src *cursor.Store) error { return a.exportForeign(ctx, src, args[0], flags, format, opts) })
			if done {
				return err
			}
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				t, err := a.transcript(cmd.Context(), db, args[0], flags.at)
				if err != nil {
					return err
				}
				if opts.Note, err = a.turnNotes(ctx, db, args[0], t.Root); err != nil {
					return err
				}
				return a.export(ctx, t, format, opts, flags.output)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.format, "format", "", "md, html, json, jsonl or vscdb (default: by the file's name, else md)")
	f.StringVarP(&flags.output, "output", "o", "", "write to this file instead of standard output")
	f.StringVar(&flags.at, "at", "", "state to write instead of the current one: a checkpoint, a message, or a root")
	f.StringVar(&flags.turns, "turns", "", "write only these turns: 3-5, 3- or -10")
	f.BoolVar(&flags.light, "light", false, "omit large outputs and diffs")
	f.BoolVar(&flags.lenient, "lenient", false, "continue past lost or damaged parts, and mark them")
	f.StringVar(&flags.base, "base", "", "state.vscdb to copy first (vscdb)")
	f.BoolVar(&flags.all, "all", false, "write all conversations; list and leave out those with lost parts (vscdb)")
	_ = cmd.RegisterFlagCompletionFunc("format", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"md", "html", "json", "jsonl", editorFormat}, cobra.ShellCompDirectiveNoFileComp
	}) // fails only for a flag that does not exist
	return cmd
}

func (a *app) exportFormat(flags exportFlags) (transcript.Format, error) {
	name := flags.format
	switch ext := strings.TrimPrefix(filepath.Ext(flags.output), "."); {
	case name != "":
	case a.json:
		name = "json"
	case ext != "":
		name = ext
	default:
		name = "md"
	}
	format, err := transcript.ParseFormat(name)
	if err != nil {
		return "", usage(err)
	}
	return format, nil
}

func exportOptions(flags exportFlags) (*transcript.Options, error) {
	opts := &transcript.Options{WithoutHeavyOutput: flags.light, Lenient: flags.lenient}
	text := flags.turns
	if text == "" {
		return opts, nil
	}
	wrong := usage(fmt.Errorf("--turns: invalid range %q; use 3-5, 3- or -10", text))
	first, last, ok := strings.Cut(text, "-")
	from, to := 0, 0
	var err1, err2 error
	if first != "" {
		from, err1 = strconv.Atoi(first)
	}
	if last != "" {
		to, err2 = strconv.Atoi(last)
	}
	switch {
	case err1 != nil || err2 != nil || first == "" && last == "":
		return nil, wrong
	case !ok:
		to = from
	case first == "":
		opts.TurnFrom = -to
		return opts, nil
	}
	if from < 1 || to != 0 && to < from {
		return nil, wrong
	}
	opts.TurnFrom, opts.TurnTo = from-1, to
	return opts, nil
}

// transcript opens a conversation in its current or an earlier state.
func (a *app) transcript(ctx context.Context, db *stet.DB, name, at string) (*transcript.Transcript, error) {
	id, err := conversationID(ctx, db, name)
	if err != nil {
		return nil, err
	}
	reader := transcript.New(db.Conversations(), db.Blobs())
	if at == "" {
		t, err := reader.Conversation(ctx, id)
		if errors.Is(err, conversation.ErrNotFound) {
			return nil, errNoRoot(id)
		}
		return t, err
	}
	a.conversation = id
	root, err := a.resolveRoot(ctx, db, at)
	if err != nil {
		return nil, err
	}
	return reader.At(ctx, root)
}

// turnNotes returns what is known about the turns of a state.
func (a *app) turnNotes(ctx context.Context, db *stet.DB, name string, root blob.ID) (func(int) string, error) {
	id, err := conversationID(ctx, db, name)
	if err != nil {
		return nil, err
	}
	details, err := timeline.New(db.Checkpoints(), db.Conversations()).Details(ctx, id, root)
	return func(turn int) string { return turnNote(details[uint64(turn)]) }, err
}

// export writes a transcript; a file gets its name once it is complete.
func (a *app) export(ctx context.Context, t *transcript.Transcript, format transcript.Format, opts *transcript.Options, output string) error {
	if output == "" {
		return transcript.Write(ctx, a.out, t, format, opts)
	}
	err := writeWhole(output, func(w io.Writer) error { return transcript.Write(ctx, w, t, format, opts) })
	if err == nil {
		a.say("wrote %s", output)
	}
	return err
}

// writeWhole replaces a file by what fn writes, or leaves it unchanged.
func writeWhole(path string, fn func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already if it was renamed
	err = fn(f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return osfile.Rename(f.Name(), path)
}
