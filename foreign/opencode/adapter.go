package opencode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/npm"
)

const name = "opencode"

// Adapter implements foreign.Adapter.
type Adapter struct{}

// New returns the adapter.
func New() *Adapter { return &Adapter{} }

// Name returns "opencode".
func (*Adapter) Name() string { return name }

func databasePath(h foreign.Host) string {
	return filepath.Join(base(h, "XDG_DATA_HOME", ".local", "share"), "opencode", "opencode.db")
}

// base is a directory of the XDG specification, which OpenCode follows on all systems.
func base(h foreign.Host, variable string, below ...string) string { return h.Dir(variable, below...) }

// Detect looks for OpenCode.
func (*Adapter) Detect(_ context.Context, h foreign.Host) (foreign.Installation, error) {
	in := foreign.Installation{Settings: pluginPath(h, ""), Program: h.Program("opencode")}
	for _, path := range []string{databasePath(h), filepath.Dir(filepath.Dir(pluginPath(h, "")))} {
		_, err := os.Stat(path)
		in.Found = in.Found || err == nil
	}
	in.Found = in.Found || in.Program != ""
	if in.Program != "" {
		in.Version = npm.Version(in.Program, "opencode-ai")
	}
	return in, nil
}

// Sessions returns the sessions of the database.
func (a *Adapter) Sessions(ctx context.Context, h foreign.Host) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		path := databasePath(h)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return
		}
		for s, err := range a.SessionAt(ctx, h, path) {
			if !yield(s, err) {
				return
			}
		}
	}
}

// SessionAt returns the sessions of a database. "PATH#ID" is one of them with its
// subagents.
func (*Adapter) SessionAt(ctx context.Context, _ foreign.Host, path string) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		path, id, _ := strings.Cut(path, "#ses_")
		if id != "" {
			id = "ses_" + id
		}
		list, err := sessions(ctx, path)
		if err != nil {
			yield(foreign.Session{}, err)
			return
		}
		family := map[string]bool{id: true}
		for _, s := range list {
			if id != "" && !family[s.ID] && !family[s.Parent] {
				continue
			}
			family[s.ID] = true
			if !yield(s, nil) {
				return
			}
		}
	}
}

// sessions reads the list of sessions, parents first: they are older.
func sessions(ctx context.Context, path string) (list []foreign.Session, err error) {
	d, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	defer d.close()
	err = d.read(ctx, func(c *sqlite3.Conn) error {
		list = nil
		return query(c, `SELECT id, coalesce(parent_id, ''), directory, title, time_created, time_updated,
			(SELECT coalesce(sum(octet_length(data)), 0) FROM part WHERE session_id = s.id)
			FROM session AS s ORDER BY time_created, id`, func(r *sqlite3.Stmt) error {
			list = append(list, foreign.Session{
				Agent: name, Path: path, ID: r.ColumnText(0), Parent: r.ColumnText(1), Workspace: r.ColumnText(2),
				Title: ownTitle(r.ColumnText(3)), Started: when(r.ColumnInt64(4)), Updated: when(r.ColumnInt64(5)), Size: 1 + r.ColumnInt64(6),
			})
			return nil
		})
	})
	return list, err
}

// provisional is the title that a session has until the model has made one.
var provisional = regexp.MustCompile(`^(New|Child) session - \d{4}-\d{2}-\d{2}T`)

func ownTitle(title string) string {
	if provisional.MatchString(title) {
		return ""
	}
	return title
}

// when is a time in milliseconds.
func when(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Files returns the rows of a session as JSON lines: one file for what identifies it, and
// one for each turn.
func (*Adapter) Files(ctx context.Context, s foreign.Session) iter.Seq2[foreign.File, error] {
	return func(yield func(foreign.File, error) bool) {
		d, err := openDatabase(s.Path)
		if err != nil {
			yield(foreign.File{}, err)
			return
		}
		defer d.close()
		row, err := sessionRow(ctx, d, s.ID)
		if err != nil {
			yield(foreign.File{}, err)
			return
		}
		if !yield(foreign.File{Name: "session.jsonl", Data: row}, nil) {
			return
		}
		index, err := readIndex(ctx, d, s.ID)
		if err != nil {
			yield(foreign.File{}, err)
			return
		}
		for _, t := range index {
			rows, err := readRows(ctx, d, t)
			f := foreign.File{Name: "turn-" + t.id + ".jsonl"}
			for _, r := range rows {
				f.Data = append(append(f.Data, r.line()...), '\n')
			}
			if !yield(f, err) || err != nil && !foreign.Unreadable(err) {
				return
			}
		}
	}
}

// sessionRow is the part of a session's row that does not change with each turn.
func sessionRow(ctx context.Context, d *database, id string) (line []byte, err error) {
	err = d.read(ctx, func(c *sqlite3.Conn) error {
		return query(c, `SELECT json_object('table', 'session', 'id', id, 'project_id', project_id, 'parent_id', parent_id, 'directory', directory,
			'version', version, 'time_created', time_created) FROM session WHERE id = ?`, func(r *sqlite3.Stmt) error {
			line = []byte(r.ColumnText(0) + "\n")
			return nil
		}, id)
	})
	if err == nil && line == nil {
		err = fmt.Errorf("%w: the database has no session %s", foreign.ErrUnreadable, id)
	}
	return line, err
}
