package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
)

func (a *app) fsckCommand() *cobra.Command {
	var readData, quarantine, restore bool
	cmd := &cobra.Command{
		Use:     "fsck",
		Short:   "Check the store and list all damage",
		GroupID: groupHouse,
		Long: `Check the store: the structure of the database, every row, and that every blob
that a conversation or checkpoint refers to exists and can be read. --read-data also
reads every stored byte and compares it with its SHA-256, which finds any changed bit.
Rows that belong together are compared both ways: one without the other is damage.
Nothing is changed.

Damage is listed on one line each, with the affected conversations, and the exit code
is 6.

If the log of a store (stet.db-wal) is missing or belongs to another store, every verb
refuses the store: put the right log back, or restore a backup. If neither is possible,
--forget-log continues with the database alone. Commits that only the log had are
lost; an existing log is kept as stet.db-wal.refused.

--quarantine sets damaged rows aside first, so that verbs that read many rows work
again; the next 'stet gc' may remove content that only these rows refer to. The rows are
kept unchanged, and --restore-quarantine puts them back. 'stet rm' removes a damaged
conversation.`,
		Example: "  stet fsck\n  stet fsck --read-data --json | jq .damage",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := a.openStore(cmd.Context(), false)
			if errors.Is(err, sqlite.ErrDamaged) {
				return a.reportDamage(fsckJSON{Damage: []damageJSON{{Kind: "database", Message: hinted(err).Error(), Conversations: []string{}}}})
			}
			if err != nil {
				return err
			}
			if err := a.quarantine(cmd.Context(), db, quarantine, restore); err != nil {
				return errors.Join(err, db.Close())
			}
			return errors.Join(a.fsck(cmd.Context(), db, readData), db.Close())
		},
	}
	cmd.Flags().BoolVar(&readData, "read-data", false, "read every byte and compare it with its SHA-256")
	cmd.Flags().BoolVar(&a.forgetLog, "forget-log", false, "continue without the log, if it is missing or belongs to another store")
	cmd.Flags().BoolVar(&quarantine, "quarantine", false, "set damaged rows aside")
	cmd.Flags().BoolVar(&restore, "restore-quarantine", false, "put back rows that were set aside")
	exclude(cmd, "quarantine", "restore-quarantine")
	return cmd
}

// quarantine sets damaged rows aside, or puts them back, and lists them.
func (a *app) quarantine(ctx context.Context, db *stet.DB, aside, back bool) error {
	move, did := db.Quarantine, "set aside"
	switch {
	case back:
		move, did = db.RestoreQuarantine, "put back"
	case !aside:
		return nil
	}
	keys, err := move(ctx)
	for _, key := range keys {
		a.say("%s %s", did, printable(key))
	}
	if errors.Is(err, upkeep.ErrNoQuarantine) {
		return usage(err)
	}
	if err != nil || len(keys) == 0 {
		return err
	}
	return db.Checkpoints().Log(ctx, &checkpoint.Operation{
		Kind: "quarantine", Author: author(), Description: fmt.Sprintf("%s %s", did, plural(int64(len(keys)), "damaged row")),
	})
}

type fsckJSON struct {
	Schema   string    `json:"schema"`
	OK       bool      `json:"ok"`
	Blobs    int64     `json:"blobs"`
	Rows     int64     `json:"rows"`
	ReadData bool      `json:"read_data"`
	Orphans  countJSON `json:"orphans"`
	Sealed   int64     `json:"sealed"`
	// Quarantined counts the damaged rows that were set aside.
	Quarantined int64        `json:"quarantined"`
	Damage      []damageJSON `json:"damage"`
}

type damageJSON struct {
	Kind string `json:"kind"`
	// ID is the blob, or the key of a row.
	ID            string   `json:"id"`
	Message       string   `json:"message"`
	Field         string   `json:"field,omitempty"`
	Conversations []string `json:"conversations"`
}

func (a *app) fsck(ctx context.Context, db *stet.DB, readData bool) error {
	report := fsckJSON{ReadData: readData}
	var engine []sqlite.Damage
	if db.Engine() != nil {
		looked := a.counter("checking the database")
		found, err := db.Engine().Check(ctx, sqlite.CheckOptions{Progress: func(done, _ int64) { looked.set(done) }})
		looked.done()
		if err != nil {
			return err
		}
		for _, d := range found.Damage {
			if d.Kind != sqlite.OrphanedObject {
				engine = append(engine, d)
			}
		}
	}
	followed := a.counter("checking references")
	// Read content that the database reports as wrong, to find the affected
	// conversations.
	result, err := db.Check(ctx, &upkeep.CheckOptions{
		ReadData: readData || len(engine) > 0,
		Progress: followed.set,
	})
	followed.done()
	if err != nil {
		if ctx.Err() != nil || len(engine) == 0 {
			return err
		}
		result = &upkeep.Report{Damage: []upkeep.Damage{{Kind: "check", Err: err}}}
	}
	report.Blobs, report.Rows = result.Blobs, result.Rows
	report.Quarantined = result.Quarantined
	report.Orphans = countJSON{result.Orphans, result.OrphanBytes}
	report.Damage = damageList(result.Damage, engine)
	if sealed, err := countArchived(ctx, db); err == nil { // the list has the damage
		report.Sealed = sealed.Conversations
	}
	return a.reportDamage(report)
}

// damageList joins the findings of the services and the engine, each once.
func damageList(services []upkeep.Damage, engine []sqlite.Damage) []damageJSON {
	list := []damageJSON{}
	known := make(map[string]bool)
	for _, d := range services {
		out := damageJSON{Kind: d.Kind, ID: d.Key, Field: d.Field, Conversations: append([]string{}, d.Conversations...)}
		if !d.ID.IsZero() {
			out.ID = d.ID.String()
		}
		if d.Err != nil {
			out.Message = d.Err.Error()
		}
		known[out.ID] = true
		list = append(list, out)
	}
	for _, d := range engine {
		out := damageJSON{Kind: string(d.Kind), Message: d.Detail, Conversations: []string{}}
		if !d.ID.IsZero() {
			out.ID = d.ID.String()
		}
		if out.ID == "" || !known[out.ID] {
			list = append(list, out)
		}
	}
	return list
}

// reportDamage prints the report and returns the matching exit code.
func (a *app) reportDamage(report fsckJSON) error {
	report.Schema, report.OK = "stet.fsck.v1", len(report.Damage) == 0
	if err := a.print(report, a.fsckText(report)); err != nil {
		return err
	}
	if !report.OK {
		return silentExit{ExitDamage}
	}
	return nil
}

func (a *app) fsckText(report fsckJSON) string {
	p := a.paint()
	var text strings.Builder
	for _, d := range report.Damage {
		fmt.Fprintf(&text, "%s  %s", p.red(pad(d.Kind, 9)), printable(d.ID))
		if d.Field != "" {
			fmt.Fprintf(&text, "  (%s)", printable(d.Field))
		}
		text.WriteString("\n")
		if d.Message != "" {
			fmt.Fprintf(&text, "           %s\n", printable(d.Message))
		}
		if len(d.Conversations) > 0 {
			fmt.Fprintf(&text, "           affects %s\n", few(d.Conversations, 8))
		}
	}
	looked := fmt.Sprintf("%s and %s checked", plural(report.Blobs, "blob"), plural(report.Rows, "row"))
	if report.ReadData {
		looked += ", every byte read"
	}
	if report.OK {
		fmt.Fprintf(&text, "%s  %s\n", p.green("ok"), looked)
	} else {
		fmt.Fprintf(&text, "%s  %s: %s\n", p.red("DAMAGED"), looked, plural(int64(len(report.Damage)), "finding"))
	}
	if report.Orphans.Blobs > 0 {
		fmt.Fprintf(&text, "    %s (%s) without a reference; 'stet gc' removes those that are old enough\n",
			plural(report.Orphans.Blobs, "blob"), byteSize(report.Orphans.Bytes))
	}
	if report.Quarantined > 0 {
		fmt.Fprintf(&text, "    %s in quarantine; 'stet fsck --restore-quarantine' puts them back\n", plural(report.Quarantined, "damaged row"))
	}
	if report.Sealed > 0 {
		fmt.Fprintf(&text, "    %s archived\n", plural(report.Sealed, "conversation"))
	}
	return text.String()
}
