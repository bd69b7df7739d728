package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/purge"
)

type purgeFlags struct {
	secret            string
	lines, dryRun, ok bool
}

func (a *app) purgeCommand() *cobra.Command {
	var flags purgeFlags
	cmd := &cobra.Command{
		Use:     "purge [PATH…]",
		Short:   "Remove a captured secret everywhere",
		GroupID: groupHouse,
		Long: `Remove content from the whole store, such as a secret that was captured by mistake.
This rewrites the history and cannot be undone.

PATH… names files and directories of this workspace. The content that any checkpoint has
there is removed from all checkpoints of all workspaces. A later rewind leaves these
files alone and names them. Conversations that hold the whole content get asterisks in
its place.

--secret FILE removes everything that contains the bytes in FILE, without the line ends
at its end; "-" is the standard input. Files that contain the bytes are removed from
checkpoints; in conversations, titles and logs, asterisks replace the bytes. They are
also found inside JSON strings and in base64. With --lines, each line of FILE is a
secret. Secrets of less than 8 bytes are refused, because they would be found by chance.

A purge includes archived conversations, compressed and encrypted data, the search index,
the events that hooks keep beside the store, and the copies in a bucket (remote.url). At the end, it searches all content and the raw
bytes of all files of the store again: "0 occurrences left" is the proof. Otherwise it
names the places that are left, and the exit code is 4. It does not change your files,
the agents' own sessions, backups, other stores that the content was pushed to, or a
server that gets copies: the proof names the server until 'stet purge' was run there, too.

Records of agents that hold the content are named. From sessions whose conversations or
records hold it, 'stet import' and hooks copy only turns that begin after the purge; a
turn that is going on stays as far as it was copied.

A killed purge leaves a store that works; run it again to finish. Change the secret in
any case: anyone who read it still has it.`,
		Example: "  stet purge --dry-run .env\n  stet purge config/prod.key\n  stet purge --secret token.txt\n  pass show deploy | stet purge --secret - -y",
		Args: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (flags.secret == "") {
				return errors.New("PATH or --secret FILE is missing; one of them is needed, not both")
			}
			if flags.lines && flags.secret == "" {
				return errors.New("--lines needs --secret FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch place := a.storePlace(); {
			case fleet.IsAddress(place):
				return usage(errors.New("purge needs a store in a directory, because a database, its logs and a bucket keep removed bytes; docs/OPERATIONS.md, \"A secret was captured\", says how to purge a tenant of a database"))
			case isRemote(place):
				return usage(errors.New("purge needs the directory of the store; run it on the server's machine with --store DIR"))
			}
			if flags.secret == "" {
				return a.withPlace(cmd.Context(), false, func(p *place) error {
					paths, err := p.pathsOf(args)
					if err != nil {
						return err
					}
					return a.purge(cmd.Context(), p.db, purge.Target{Workspace: p.space.ID(), Paths: paths}, flags)
				})
			}
			secrets, err := a.secretsIn(flags.secret, flags.lines)
			if err != nil {
				return err
			}
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				return a.purge(cmd.Context(), db, purge.Target{Secrets: secrets}, flags)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.secret, "secret", "", "file with the bytes to remove; - for the standard input")
	f.BoolVar(&flags.lines, "lines", false, "each line of the file is a secret")
	f.BoolVar(&flags.dryRun, "dry-run", false, "show what would be removed, remove nothing")
	f.BoolVarP(&flags.ok, "yes", "y", false, "do not ask")
	return cmd
}

// secretsIn reads what is to be removed.
func (a *app) secretsIn(path string, lines bool) ([][]byte, error) {
	var in io.Reader = a.in
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, 64<<20))
	if err != nil {
		return nil, err
	}
	data = bytes.TrimRight(data, "\r\n")
	all := [][]byte{data}
	if lines {
		all = slices.DeleteFunc(bytes.FieldsFunc(data, func(r rune) bool { return r == '\n' || r == '\r' }), func(line []byte) bool {
			return len(bytes.TrimSpace(line)) == 0
		})
	}
	if len(all) == 0 {
		return nil, usage(errors.New("the file with secrets is empty"))
	}
	for i, secret := range all {
		if err := purge.CheckSecret(secret); err != nil {
			if lines {
				err = fmt.Errorf("secret %d: %w", i+1, err)
			}
			return nil, usage(err)
		}
	}
	return all, nil
}

type purgeJSON struct {
	Schema        string                   `json:"schema"`
	DryRun        bool                     `json:"dry_run"`
	Files         []purgedFileJSON         `json:"files"`
	Conversations []purgedConversationJSON `json:"conversations"`
	Rows          []string                 `json:"rows"`
	Events        []string                 `json:"event_files"`
	Contents      int                      `json:"contents"`
	Partly        []purgedFileJSON         `json:"partly"`
	Unread        []string                 `json:"unread"`
	Rewritten     rewrittenJSON            `json:"rewritten"`
	Removed       countJSON                `json:"removed"`
	Copies        int                      `json:"copies_removed"`
	Scanned       scannedJSON              `json:"scanned"`
	StillThere    []string                 `json:"still_in_workspace"`
	Records       []string                 `json:"agent_files"`
	Remains       []remainJSON             `json:"remains"`
	Left          int                      `json:"occurrences_left"`
	again         []bool                   // by StillThere: the settings do not keep it from being captured again
}

type purgedFileJSON struct {
	Workspace   string   `json:"workspace"`
	Path        string   `json:"path"`
	Checkpoints []string `json:"checkpoints"`
}

type purgedConversationJSON struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Places int    `json:"places"`
}

type rewrittenJSON struct {
	Checkpoints   int `json:"checkpoints"`
	Conversations int `json:"conversations"`
	Rows          int `json:"rows"`
	Events        int `json:"event_files"`
}

type scannedJSON struct {
	Blobs int   `json:"blobs"`
	Rows  int   `json:"rows"`
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

type remainJSON struct {
	Where string `json:"where"`
	Count int    `json:"count"`
	Why   string `json:"why"`
}

// purge shows what was found, asks, removes it and prints the proof.
func (a *app) purge(ctx context.Context, db *stet.DB, target purge.Target, flags purgeFlags) error {
	p, err := db.Purger()
	if err != nil {
		return err
	}
	read := a.counter("searching")
	target.Progress = func(n int) { read.set(int64(n)) }
	plan, err := p.Find(ctx, target)
	read.done()
	if err != nil {
		return err
	}
	value, err := a.planned(ctx, db, plan, flags.dryRun)
	if err != nil {
		return err
	}
	if flags.dryRun || plan.Empty() {
		return a.print(value, plannedText(value, plan))
	}
	if !a.json {
		if _, err := io.WriteString(a.out, plannedText(value, plan)); err != nil {
			return err
		}
	}
	if err := a.agreed(ctx, flags.ok, "Remove it everywhere and rewrite history, which cannot be undone?"); err != nil {
		return err
	}
	res, err := p.Remove(ctx, plan)
	read.done()
	if err != nil {
		a.say("the purge is not finished; the store still works; run it again")
		return err
	}
	value.done(res)
	err = db.Checkpoints().Log(ctx, &checkpoint.Operation{
		Kind: "purge", Author: author(),
		Description: fmt.Sprintf("removed content from %s and %s", plural(int64(res.Checkpoints), "checkpoint"), plural(int64(res.Conversations), "conversation")),
	})
	if err != nil {
		return err
	}
	if err := a.print(value, purgedText(value)); err != nil {
		return err
	}
	if len(value.Remains) > 0 {
		return silentExit{ExitConflict}
	}
	return nil
}

// planned describes what was found.
func (a *app) planned(ctx context.Context, db *stet.DB, plan *purge.Plan, dryRun bool) (*purgeJSON, error) {
	_, opts, err := a.checkpoints(db)
	if err != nil {
		return nil, err
	}
	v := &purgeJSON{
		Schema: "stet.purge.v1", DryRun: dryRun, Rows: append([]string{}, plan.Rows...), Events: append([]string{}, plan.Beside...), Contents: plan.Contents,
		Conversations: []purgedConversationJSON{}, Unread: []string{}, StillThere: []string{}, Records: []string{}, Remains: []remainJSON{},
	}
	for _, s := range plan.Sessions {
		if s.Holds && !slices.Contains(v.Records, s.Path) {
			v.Records = append(v.Records, s.Path)
		}
	}
	if v.Files, err = purgedFiles(ctx, db, plan.Files); err != nil {
		return nil, err
	}
	if v.Partly, err = purgedFiles(ctx, db, plan.Partly); err != nil {
		return nil, err
	}
	for _, c := range plan.Conversations {
		v.Conversations = append(v.Conversations, purgedConversationJSON{ID: c.ID, Title: c.Title, Places: c.Places})
	}
	for _, err := range plan.Unread {
		v.Unread = append(v.Unread, err.Error())
	}
	for _, f := range v.Files {
		if path := filepath.Join(f.Workspace, f.Path); filepath.IsAbs(f.Workspace) && fileExists(path) {
			v.StillThere = append(v.StillThere, path)
			v.again = append(v.again, opts.Scan.LeftOut(f.Path) == "")
		}
	}
	return v, nil
}

// purgedFiles names workspaces by their paths and checkpoints by their names.
func purgedFiles(ctx context.Context, db *stet.DB, files []purge.File) ([]purgedFileJSON, error) {
	out := []purgedFileJSON{}
	names := make(map[string]string)
	for _, f := range files {
		one := purgedFileJSON{Workspace: f.Workspace, Path: f.Path}
		if path, err := db.Checkpoints().WorkspacePath(ctx, f.Workspace); err == nil {
			one.Workspace = path
		}
		for _, id := range f.Checkpoints {
			if names[id] == "" {
				rec, err := db.Checkpoints().Get(ctx, id)
				if err != nil {
					return nil, err
				}
				names[id] = rec.Name()
			}
			one.Checkpoints = append(one.Checkpoints, names[id])
		}
		out = append(out, one)
	}
	return out, nil
}

func (v *purgeJSON) done(res *purge.Result) {
	v.Rewritten = rewrittenJSON{res.Checkpoints, res.Conversations, res.Rows, res.Files}
	v.Removed = countJSON{res.Removed, res.RemovedBytes}
	v.Copies, v.Left = res.Copies, res.Left()
	v.Scanned = scannedJSON{res.Scanned.Blobs, res.Scanned.Rows, res.Scanned.Files, res.Scanned.Bytes}
	for _, one := range res.Remains {
		v.Remains = append(v.Remains, remainJSON(one))
	}
}

func plannedText(v *purgeJSON, plan *purge.Plan) string {
	if plan.Empty() {
		return "nothing to remove: not found in any checkpoint, conversation, row or stored content\n" + recordsText(v)
	}
	var text strings.Builder
	if v.Contents > 0 {
		fmt.Fprintf(&text, "Found in %s\n", plural(int64(v.Contents), "stored content"))
	} else {
		// Only at named paths whose content is too short to be searched for, or not in the store.
		text.WriteString("Found\n")
	}
	for _, f := range v.Files {
		fmt.Fprintf(&text, "  file          %s  %s\n", printable(filepath.Join(f.Workspace, f.Path)), few(f.Checkpoints, 6))
	}
	for _, c := range v.Conversations {
		fmt.Fprintf(&text, "  conversation  %s  %s  %s\n", printable(c.ID), plural(int64(c.Places), "place"), printable(c.Title))
	}
	if n := len(v.Rows); n > 0 {
		fmt.Fprintf(&text, "  rows          %d\n", n)
	}
	for _, path := range v.Events {
		fmt.Fprintf(&text, "  events        %s\n", printable(path))
	}
	if plan.Unfinished {
		text.WriteString("  an earlier purge that is not finished\n")
	}
	for _, f := range v.Partly {
		fmt.Fprintf(&text, "Stays     %s contains it (%s); remove it with --secret\n", printable(filepath.Join(f.Workspace, f.Path)), few(f.Checkpoints, 6))
	}
	for _, one := range v.Unread {
		fmt.Fprintf(&text, "Unread    %s\n", printable(one))
	}
	for i, path := range v.StillThere {
		next := "checkpoints leave it out from now on"
		if v.again[i] {
			next = "the next checkpoint captures it again unless .stetignore or capture.exclude lists it"
		}
		fmt.Fprintf(&text, "Your file %s stays, and %s\n", printable(path), next)
	}
	return text.String() + recordsText(v)
}

// recordsText names the agents' own records that hold it.
func recordsText(v *purgeJSON) string {
	text := ""
	for _, path := range v.Records {
		text += fmt.Sprintf("Record    %s of the agent still holds it; what it has so far is not copied again\n", printable(tilde(path)))
	}
	return text
}

func purgedText(v *purgeJSON) string {
	var text strings.Builder
	fmt.Fprintf(&text, "rewrote %s, %s and %s; removed %s (%s)",
		plural(int64(v.Rewritten.Checkpoints), "checkpoint"), plural(int64(v.Rewritten.Conversations), "conversation"),
		plural(int64(v.Rewritten.Rows), "other row"), plural(v.Removed.Blobs, "blob"), byteSize(v.Removed.Bytes))
	if v.Rewritten.Events > 0 {
		fmt.Fprintf(&text, "; masked %s of events", plural(int64(v.Rewritten.Events), "file"))
	}
	if v.Copies > 0 {
		fmt.Fprintf(&text, " and their copies at the remote")
	}
	fmt.Fprintf(&text, "\nsearched again: %s, %s, %s\n", plural(int64(v.Scanned.Blobs), "blob"), plural(int64(v.Scanned.Rows), "row"),
		plural(int64(v.Scanned.Files), "file")+" ("+byteSize(v.Scanned.Bytes)+")")
	for _, one := range v.Remains {
		fmt.Fprintf(&text, "left      %s: %s\n", printable(one.Where), printable(one.Why))
	}
	unknown := 0
	for _, one := range v.Remains {
		if one.Count == 0 {
			unknown++
		}
	}
	left := plural(int64(v.Left), "occurrence")
	if unknown > 0 {
		fmt.Fprintf(&text, "%s left here; not proven for %s, named above: run it again\n", left, plural(int64(unknown), "other place"))
	} else {
		fmt.Fprintf(&text, "%s left\n", left)
	}
	return text.String()
}
