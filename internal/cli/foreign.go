package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	"github.com/stet-dev/stet/transcript"
)

// errForeign is the error of a verb that needs a stet store.
func errForeign(path string) error {
	return usage(fmt.Errorf("%s is not a stet store; ls, show, export and du can read a state.vscdb or store.db directly, "+
		"everything else needs 'stet import --from cursor %s' first", path, path))
}

// withForeign runs fn with the store of another program, opened for reading. It does
// nothing if the store is a stet store.
func (a *app) withForeign(ctx context.Context, fn func(*cursor.Store) error) (done bool, err error) {
	place := strings.TrimPrefix(a.storePlace(), "file://")
	if !foreignStore(place) {
		return false, nil
	}
	src, err := cursor.Open(ctx, place, &cursor.Options{Rescue: true})
	if err == nil {
		err = errors.Join(fn(src), src.Close())
	}
	if errors.Is(err, cursor.ErrCorrupt) || errors.Is(err, cursor.ErrTruncated) {
		return true, coded(ExitDamage, "%w", err) // everything readable was read
	}
	return true, explainSource(err)
}

type foreignJSON struct {
	Schema    string `json:"schema"`
	ID        string `json:"id"`
	Title     string `json:"title"`
	Workspace string `json:"workspace,omitempty"`
	CreatedAt string `json:"created_at,omitempty"`
	UpdatedAt string `json:"updated_at,omitempty"`
	Archived  bool   `json:"archived,omitempty"`
	Parent    string `json:"parent,omitempty"`
	// Missing means that only a list names it.
	Missing bool `json:"missing,omitempty"`

	*foreignDetail
}

func foreignHeader(h cursor.Header) foreignJSON {
	out := foreignJSON{
		Schema: "stet.foreign.conversation.v1", ID: h.ID, Title: h.Title, Workspace: h.Workspace,
		Archived: h.Archived, Parent: h.Parent, Missing: h.Missing,
	}
	if !h.Created.IsZero() {
		out.CreatedAt = stamp(h.Created)
	}
	if !h.Updated.IsZero() {
		out.UpdatedAt = stamp(h.Updated)
	}
	return out
}

// foreignHeaders lists the conversations of a store, last changed first.
func foreignHeaders(ctx context.Context, src *cursor.Store) ([]cursor.Header, error) {
	var all []cursor.Header
	for h, err := range src.Conversations(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	slices.SortStableFunc(all, func(a, b cursor.Header) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

func (a *app) lsForeign(ctx context.Context, src *cursor.Store, flags lsFlags) error {
	if flags.here || flags.agent != "" {
		return usage(errors.New("--here and --agent need a stet store: this one records neither"))
	}
	all, err := foreignHeaders(ctx, src)
	if err != nil {
		return err
	}
	if flags.limit > 0 && len(all) > flags.limit {
		all = all[:flags.limit]
	}
	if a.json {
		for _, h := range all {
			if err := a.printJSON(foreignHeader(h)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		a.say("no conversations in %s", src.Path())
		return nil
	}
	_, err = fmt.Fprint(a.out, a.foreignTable(all))
	return err
}

func (a *app) foreignTable(all []cursor.Header) string {
	p, now := a.paint(), time.Now()
	ids := make([]string, len(all))
	for i, h := range all {
		ids[i] = h.ID
	}
	short := shortIDs(ids)
	var rows [][]string
	for _, h := range all {
		updated, note := "", ""
		if !h.Updated.IsZero() {
			updated = when(h.Updated, now)
		}
		switch {
		case h.Missing:
			note = "missing"
		case h.Subagent:
			note = "subagent"
		case h.Archived:
			note = "archived"
		}
		rows = append(rows, []string{printable(short[h.ID]), updated, note, printable(h.Title)})
	}
	widths := columnWidths(rows, 3)
	var text strings.Builder
	for _, row := range rows {
		line := p.yellow(pad(row[0], widths[0])) + "  " + p.dim(pad(row[1], widths[1])) + "  " + p.dim(pad(row[2], widths[2])) + "  " + row[3]
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return text.String()
}

// foreignID finds the conversation that an id or a unique prefix of one names.
func foreignID(ctx context.Context, src *cursor.Store, name string) (string, error) {
	var found []string
	for h, err := range src.Conversations(ctx) {
		switch {
		case err != nil:
			return "", err
		case h.ID == name:
			return name, nil
		case name != "" && strings.HasPrefix(h.ID, name):
			found = append(found, h.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", coded(ExitNotFound, "no conversation %q in %s", name, src.Path())
	case 1:
		return found[0], nil
	}
	return "", usage(fmt.Errorf("conversation %q is ambiguous: it matches %s", name, few(found, 5)))
}

// exportForeign writes a conversation of another program's store. It is first
// imported into a temporary store.
func (a *app) exportForeign(ctx context.Context, src *cursor.Store, name string, flags exportFlags, format transcript.Format, opts *transcript.Options) error {
	id, err := foreignID(ctx, src, name)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "stet-export-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := stet.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	result, err := cursorimport.Import(ctx, src, cursorimport.Target{Blobs: db.Blobs(), Rows: db.Rows()}, &cursorimport.Options{
		Conversations: func(h cursor.Header) bool { return h.ID == id },
	})
	if err != nil {
		return err
	}
	for _, s := range result.Skipped {
		if s.Damage {
			a.warn("%s: %s", printable(s.Key), printable(s.Reason))
		}
	}
	if result.Conversations == 0 && result.Damaged() > 0 {
		return coded(ExitDamage, "cannot read any part of conversation %s", id)
	}
	t, err := a.transcript(ctx, db, id, flags.at)
	if code, _ := Code(err); code == ExitNotFound && flags.at == "" {
		return errNoRoot(id)
	}
	if err != nil {
		return err
	}
	if err := a.export(ctx, t, format, opts, flags.output); err != nil || result.Damaged() == 0 {
		return err
	}
	return silentExit{ExitDamage} // losses are reported already
}
