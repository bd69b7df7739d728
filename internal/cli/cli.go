// Package cli is the command line: it reads flags, calls services, and prints.
//
// It promises the conventions that scripts rely on: data on stdout, messages on
// stderr, --json with a versioned schema, the exit codes of Code, and no questions
// without a terminal. Each verb group has its own file with a function that returns
// its command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/internal/supervise"
	"github.com/stet-dev/stet/meter"
)

// app is the state that every verb shares: the streams, the global flags, and the
// store once it is open.
type app struct {
	args     []string
	in       io.Reader
	out, err io.Writer
	notices  io.Writer // where a hook tells its agent of a rewind; nil elsewhere
	command  string    // the verb, as in "stet rewind"

	store        string        // --store
	blobs        string        // --blobs
	forgetLog    bool          // fsck --forget-log
	cache        int64         // bytes that an open store holds in memory of content, of pages, and of what is not durable; 0 for the defaults
	compactLater bool          // an open store leaves compressing to the verb
	compacted    int64         // bytes of what a verb stored for which compressing was begun
	busy         time.Duration // how long to wait for other processes that use the store; 0 for the default
	workspace    string        // -C
	conversation string        // -c
	json         bool
	noColor      bool
	noPager      bool // --no-pager, or the setting
	quiet        bool
	shorten      func(id string) string // what 'short' does in the open store
	reread       bool                   // --reread
	full         bool                   // --full
	keyFile      string                 // --key-file
	otherSide    bool                   // store is the other side of a push or pull
	config       string                 // --config
	storeFlag    bool                   // whether --store was given
	bucket       string                 // --blobs, or the setting
	tenant       string                 // of a store in a database; only a setting
	keyring      string                 // likewise
	background   bool                   // whether to start background processes; only a setting
	asked        bool                   // whether the store's passphrase was asked for
	remote       string                 // --remote, or the setting
	copying      copying                // settings of the remote
	fleet        *fleet.Fleet           // the backend of the open store, if that is a database
	meters       meter.Provider         // where an open store reports its figures; nil for nothing
}

// Main runs one command and returns its exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	if len(args) > 0 && args[0] == supervise.LimitedVerb {
		fmt.Fprintln(errOut, "stet:", supervise.Become(args[1:]))
		return supervise.ExitNotExecutable
	}
	ctx, stop := signal.NotifyContext(context.Background(), append(supervise.NotIgnored(syscall.SIGHUP), os.Interrupt, syscall.SIGTERM)...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends what ignores the first
	a := &app{in: in, out: out, err: errOut, args: args}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if slices.Contains(args, "hook") && a.command == "" {
		a.hookFailed(strings.Join(args, " "), err) // an agent of an earlier or later release wrote the command
		return ExitOK
	}
	if errors.Is(err, errInterrupted) || ctx.Err() != nil && isCancelled(err) {
		err = interrupted(err)
	}
	return a.fail(err)
}

func (a *app) root() *cobra.Command {
	showVersion := false
	root := &cobra.Command{
		Use:   "stet",
		Short: "Record what AI agents did, and undo any of it",
		Long: `stet records what AI agents did, every conversation and every file, and lets you
undo any of it.

Try it in a minute:
  stet demo                 a sample workspace with a scripted agent
  stet run -- CMD…          checkpoints around any command, in this directory
  stet log                  what happened
  stet rewind REF           back to any point; stet undo reverts that

Exit codes: 0 ok, 1 error, 2 usage or confirmation needed, 3 not found,
4 conflict (nothing changed), 5 failed and rolled back, 6 damage found, 7 busy,
8 remote unreachable, 130 interrupted.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				return a.printVersion()
			}
			return cmd.Help()
		},

		PersistentPreRun: func(cmd *cobra.Command, _ []string) { a.command = cmd.CommandPath() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.store, "store", "", "store to use: a directory or URL (env STET_STORE; default "+defaultStoreText+")")
	flags.StringVar(&a.blobs, "blobs", "", "bucket of a store in a database: s3://… (env STET_BLOBS)")
	flags.StringVar(&a.remote, "remote", "", "server or bucket that gets a copy of the store's blobs: http(s)://… or s3://… (env STET_REMOTE_URL)")
	flags.StringVarP(&a.workspace, "workspace", "C", "", "workspace directory (default: the current directory)")
	flags.StringVarP(&a.conversation, "conversation", "c", "", "conversation to work on (id or unique prefix)")
	flags.BoolVar(&a.json, "json", false, "print machine-readable output with a versioned schema")
	flags.BoolVar(&a.noColor, "no-color", false, "never use colour (also: NO_COLOR)")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "print only errors and data")
	flags.StringVar(&a.keyFile, "key-file", "", "key file of an encrypted store (env STET_KEY_FILE)")
	flags.StringVar(&a.config, "config", "", "settings file (env STET_CONFIG; default $XDG_CONFIG_HOME/stet/config.toml)")
	_ = root.RegisterFlagCompletionFunc("conversation", a.completeConversationFlag) // fails for unknown flags only
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "print the version, the commit and its date")
	root.SetFlagErrorFunc(a.badFlag)
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Start"},
		&cobra.Group{ID: groupLook, Title: "Look"},
		&cobra.Group{ID: groupBack, Title: "Go back"},
		&cobra.Group{ID: groupMove, Title: "Move"},
		&cobra.Group{ID: groupHouse, Title: "Keep house"},
		&cobra.Group{ID: groupServe, Title: "Serve"},
		&cobra.Group{ID: groupPlumbing, Title: "Plumbing"},
	)
	root.AddCommand(a.commands()...)
	wrapUsage(root)
	return root
}

// Groups of verbs, as the help shows them.
const (
	groupStart    = "start"
	groupLook     = "look"
	groupBack     = "back"
	groupMove     = "move"
	groupHouse    = "house"
	groupServe    = "serve"
	groupPlumbing = "plumbing"
)
