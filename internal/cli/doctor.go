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
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest/contract"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/internal/osfile"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest/kvcases"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/workspace"
)

func (a *app) doctorCommand() *cobra.Command {
	var quick, verbose bool
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check that this machine and the store keep their promises",
		GroupID: groupStart,
		Long: `Check the store (it opens, only you can read it, there is free space, the write-ahead
log works, the database is intact, no rewind is unfinished), the workspace and the limits
of its file system, and whether connected agents run the hooks of stet.
Then test every promise of a store on a scratch store on the same file system: promises
that hold there also hold for your data. Your data is not changed.

If the store is in a database, doctor checks the database and the bucket (whether they
answer, their versions, clocks and permissions), and tests every promise on a scratch
tenant, which it removes afterwards.

If the store is on a server, doctor tests the promises about blobs on the server itself.
The blobs that it leaves there are unreferenced, and gc removes them. Rows are only read.

Each check is a line that begins with ok or FAIL. Promises that are kept share a line;
--verbose names each of them. If a check fails, the exit code is 1; if there is damage,
it is 6. --quick skips the scratch store.`,
		Example: "  stet doctor\n  stet doctor --store /mnt/nas/stet\n  stet doctor --store http://127.0.0.1:7717\n" +
			"  stet doctor --store postgres://stet@db/stet --blobs s3://my-bucket/stet",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if place := a.storePlace(); isRemote(place) || fleet.IsAddress(place) {
				d, examine := &doctor{app: a, dir: shown(place), verbose: verbose}, (*doctor).server
				if !isRemote(place) {
					examine = (*doctor).backends
				}
				if err := examine(d, cmd.Context(), quick); err != nil {
					return err
				}
				return d.close()
			}
			dir, err := a.storeDir()
			if err != nil {
				return err
			}
			d := &doctor{app: a, dir: dir, verbose: verbose}
			if err := d.examine(cmd.Context(), quick); err != nil {
				return err
			}
			return d.close()
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "skip the tests on a scratch store")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "name each promise that is kept")
	return cmd
}

// doctor runs checks and reports each at once.
type doctor struct {
	app     *app
	dir     string
	verbose bool
	failed  int
	damage  bool
	checks  []checkJSON
}

type checkJSON struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// report records the result of a check; the detail is for success.
func (d *doctor) report(name, detail string, err error) {
	p := d.app.paint()
	check, mark := checkJSON{Name: name, OK: err == nil, Detail: detail}, p.green("ok  ")
	if err != nil {
		d.failed++
		check.Detail = strings.Join(strings.Fields(err.Error()), " ") // on one line
		mark = p.red("FAIL")
	}
	d.checks = append(d.checks, check)
	d.print(mark, name, check.Detail)
}

// print prints the line of a check.
func (d *doctor) print(mark, name, detail string) {
	if d.app.json {
		return
	}
	p, line := d.app.paint(), mark+"  "+name
	if detail != "" {
		line += p.dim(": " + printable(detail))
	}
	fmt.Fprintln(d.app.out, line)
}

// promise is one case of a contract.
type promise struct {
	name string
	test func() error
}

// test tests the promises about a part of the store. Those that are kept are one line.
func (d *doctor) test(ctx context.Context, part string, promises []promise) error {
	kept := 0
	for _, p := range promises {
		err := p.test()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && !d.verbose {
			d.checks = append(d.checks, checkJSON{Name: part + ": " + p.name, OK: true})
			kept++
			continue
		}
		d.report(part+": "+p.name, "", err)
	}
	if kept > 0 {
		d.print(d.app.paint().green("ok  "), part, plural(int64(kept), "promise")+" kept")
	}
	return nil
}

func (d *doctor) close() error {
	if d.app.json {
		if err := d.app.printJSON(map[string]any{"schema": "stet.doctor.v1", "ok": d.failed == 0, "store": d.dir, "checks": d.checks}); err != nil {
			return err
		}
	}
	switch {
	case d.damage:
		return silentExit{ExitDamage}
	case d.failed > 0:
		return silentExit{ExitError}
	}
	d.app.say("%s passed", plural(int64(len(d.checks)), "check"))
	return nil
}

func (d *doctor) examine(ctx context.Context, quick bool) error {
	d.workspace()
	d.agents(ctx)
	d.space()
	if where := networkText(osfile.Network(existing(d.dir))); where != "" {
		d.report("network", where, nil)
	}
	if _, err := os.Stat(d.dir); errors.Is(err, fs.ErrNotExist) {
		d.report("store", "none at "+d.dir+" yet; it is created at first use", nil)
	} else {
		d.permissions()
		if err := d.store(ctx); err != nil {
			return err
		}
		d.background()
	}
	if quick {
		return nil
	}
	return d.promises(ctx)
}

// background reports a failure in the background.
func (d *doctor) background() {
	if why, at := lastFailure(d.dir); why != "" {
		d.report("compressing", "", fmt.Errorf("failed in the background %s: %s; 'stet compact' tries again", when(at, now()), why))
	}
}

func (d *doctor) workspace() {
	dir, err := d.app.workspaceDir()
	if err == nil {
		err = workspace.RootAllowed(dir)
	}
	if err == nil {
		_, err = os.ReadDir(dir)
	}
	if errors.Is(err, workspace.ErrRootRefused) {
		d.report("workspace", err.Error()+"; this matters only for checkpoints of it", nil)
		return
	}
	d.report("workspace", dir, err)
	if err == nil {
		d.traits(dir)
	}
}

// existing returns the nearest existing directory at or above dir.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func (d *doctor) space() {
	const least = 64 << 20
	free, err := freeSpace(existing(d.dir))
	if err == nil && free < least {
		err = fmt.Errorf("only %s left for the store", byteSize(free))
	}
	d.report("free space", byteSize(free), err)
}

// networkText says what a network file system means for a store, or nothing for a local one.
func networkText(kind string) string {
	if kind == "" {
		return ""
	}
	return "the store is on " + kind + ": only one machine may use it at a time, and only if the server syncs and locks reliably; " +
		"several machines need 'stet serve' or a database"
}

func (d *doctor) permissions() {
	info, err := os.Stat(d.dir)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("%s has mode %04o: others can read it; chmod 700", d.dir, info.Mode().Perm())
	}
	d.report("permissions", "only you", err)
}

// store checks the user's own store, as far as it can be opened.
func (d *doctor) store(ctx context.Context) error {
	db, err := d.app.openStore(ctx, false)
	if errors.Is(err, sqlite.ErrDamaged) {
		d.damage = true
	}
	if err != nil {
		d.report("store opens", "", err)
		return ctx.Err()
	}
	detail := d.dir
	if db.Ring() != nil {
		detail += ", encrypted"
	}
	d.report("store opens", detail, nil)
	err = d.inside(ctx, db)
	return errors.Join(err, db.Close())
}

func (d *doctor) inside(ctx context.Context, db *stet.DB) error {
	stats, err := db.Engine().Stats(ctx, nil)
	d.report("write-ahead log", "works, "+byteSize(stats.LogBytes), err)
	found, err := db.Engine().Check(ctx, sqlite.CheckOptions{})
	if err == nil {
		for _, damage := range found.Damage {
			if damage.Kind != sqlite.OrphanedObject {
				d.damage = true
				err = errors.Join(err, errors.New(damage.String()))
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.report("integrity", plural(found.Blobs, "blob"), err)
	pending, err := db.Checkpoints().Interrupted(ctx)
	if err != nil {
		return err
	}
	detail := "none"
	if pending > 0 {
		detail = fmt.Sprintf("%d; the next command in its workspace finishes it or rolls it back", pending)
	}
	d.report("unfinished rewinds", detail, nil)
	return nil
}

// promises tests the contracts on a scratch store beside the real one.
func (d *doctor) promises(ctx context.Context) error {
	scratch, err := os.MkdirTemp(existing(filepath.Dir(d.dir)), ".stet-doctor-*")
	if err != nil {
		d.report("scratch store", "", err)
		return nil
	}
	defer os.RemoveAll(scratch)
	engine, err := sqlite.Open(ctx, filepath.Join(scratch, "store"), nil)
	d.report("scratch store", scratch, err)
	if err != nil {
		return ctx.Err()
	}
	err = d.cases(ctx, engine.Blobs(), engine.Rows())
	d.report("close", "", engine.Close())
	return err
}

// cases tests every promise on a pair of drivers without user data.
func (d *doctor) cases(ctx context.Context, blobs blob.Store, rows kv.Store) error {
	var ofRows, ofBoth []promise
	for _, c := range kvcases.All() {
		ofRows = append(ofRows, promise{c.Name, func() error { return c.Func(ctx, rows) }})
	}
	for _, c := range kvcases.Refs() {
		ofBoth = append(ofBoth, promise{c.Name, func() error { return c.Func(ctx, rows, blobs) }})
	}
	err := d.blobs(ctx, blobs)
	if err == nil {
		err = d.test(ctx, "rows", ofRows)
	}
	if err == nil {
		err = d.test(ctx, "together", ofBoth)
	}
	return err
}

// blobs tests the promises about blobs.
func (d *doctor) blobs(ctx context.Context, blobs blob.Store) error {
	var all []promise
	for _, c := range contract.Cases() {
		all = append(all, promise{c.Name, func() error { return c.Func(ctx, blobs) }})
	}
	return d.test(ctx, "blobs", all)
}
