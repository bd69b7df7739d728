package opencode

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/newfile"
)

// Cut writes the messages up to a turn as a file for `opencode import`, with new ids,
// so that the old session is not touched. The new session exists only after the
// import, so the continuation names no session.
func (*Adapter) Cut(ctx context.Context, h foreign.Host, s foreign.Session, after foreign.Turn) (foreign.Continuation, error) {
	if s.Parent != "" {
		return foreign.Continuation{}, fmt.Errorf("%w: it is the session of a subagent", foreign.ErrCannotCut)
	}
	d, err := openDatabase(s.Path)
	if err != nil {
		return foreign.Continuation{}, fmt.Errorf("%w: %w", foreign.ErrCannotCut, err)
	}
	defer d.close()
	x, err := newExport(ctx, d, s.ID, after.ID)
	if err != nil {
		return foreign.Continuation{}, err
	}
	path := filepath.Join(filepath.Dir(d.path), "stet-"+x.session+".json")
	if err := newfile.Create(path, func(w io.Writer) error { return x.write(ctx, w) }); err != nil {
		return foreign.Continuation{}, err
	}
	program := "opencode"
	if found := h.Program("opencode"); found != "" {
		program = found
	}
	return foreign.Continuation{
		Prepare: []string{program, "import", path}, Command: []string{program, "--session", x.session},
		Dir: s.Workspace, Created: []string{path},
	}, nil
}

// export writes a session as `opencode export` does.
type export struct {
	d       *database
	info    map[string]any
	turns   []*turnIndex
	session string
	ids     map[string]string // old to new
}

func newExport(ctx context.Context, d *database, session, last string) (*export, error) {
	index, err := readIndex(ctx, d, session)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", foreign.ErrCannotCut, err)
	}
	for i, t := range index {
		if t.id != last {
			continue
		}
		x := &export{d: d, turns: index[:i+1], session: sessionID(time.Now()), ids: map[string]string{}}
		x.ids[session] = x.session
		if x.info, err = sessionInfo(ctx, d, session); err != nil {
			return nil, fmt.Errorf("%w: %w", foreign.ErrCannotCut, err)
		}
		return x, nil
	}
	return nil, fmt.Errorf("%w: turn %q is not in the session", foreign.ErrCannotCut, last)
}

// sessionInfo reads the description of a session for an export. It leaves out columns
// that a release does not have.
func sessionInfo(ctx context.Context, d *database, id string) (info map[string]any, err error) {
	err = d.read(ctx, func(c *sqlite3.Conn) error {
		return query(c, `SELECT * FROM session WHERE id = ?`, func(r *sqlite3.Stmt) error {
			info = map[string]any{}
			times := map[string]any{}
			for i := range r.ColumnCount() {
				if r.ColumnType(i) == sqlite3.NULL {
					continue
				}
				switch name := r.ColumnName(i); name {
				case "id", "slug", "directory", "path", "title", "version", "agent":
					info[name] = r.ColumnText(i)
				case "project_id":
					info["projectID"] = r.ColumnText(i)
				case "permission", "model":
					if data := r.ColumnBlob(i, nil); json.Valid(data) {
						info[name] = json.RawMessage(data)
					}
				case "time_created", "time_updated":
					times[name[len("time_"):]] = r.ColumnInt64(i)
				}
			}
			info["time"] = times
			return nil
		}, id)
	})
	if err == nil && info == nil {
		err = fmt.Errorf("the database has no session %s", id)
	}
	return info, err
}

func (x *export) write(ctx context.Context, w io.Writer) error {
	if _, err := fmt.Fprintf(w, `{"info":%s,"messages":[`, x.rename(x.info)); err != nil {
		return err
	}
	first := true
	for _, t := range x.turns {
		rows, err := readRows(ctx, x.d, t)
		if err != nil {
			return fmt.Errorf("%w: %w", foreign.ErrCannotCut, err)
		}
		messages, err := x.messages(rows)
		if err != nil {
			return err
		}
		for _, m := range messages {
			if !first {
				io.WriteString(w, ",\n") // the next write fails if this one does
			}
			first = false
			if _, err := w.Write(x.rename(m)); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(w, "]}\n")
	return err
}

// exported is a message with its parts.
type exported struct {
	Info  map[string]any   `json:"info"`
	Parts []map[string]any `json:"parts"`
}

// messages makes the messages of rows, and new ids for them.
func (x *export) messages(rows []row) (out []exported, err error) {
	for _, r := range rows {
		if r.data == nil {
			return nil, fmt.Errorf("%w: %s %s has %d bytes", foreign.ErrCannotCut, r.table, r.id, r.size)
		}
		fields := map[string]any{}
		if err := unmarshal(r.data, &fields); err != nil {
			return nil, fmt.Errorf("%w: %s %s: %w", foreign.ErrCannotCut, r.table, r.id, err)
		}
		x.ids[r.id] = otherID(r.id)
		fields["id"], fields["sessionID"] = r.id, x.session
		if r.table == "message" {
			out = append(out, exported{Info: fields, Parts: []map[string]any{}})
			continue
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("%w: part %s has no message", foreign.ErrCannotCut, r.id)
		}
		fields["messageID"] = r.message
		last := &out[len(out)-1]
		last.Parts = append(last.Parts, fields)
	}
	return out, nil
}

func unmarshal(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // numbers stay as they are
	return dec.Decode(v)
}

// rename encodes a value with the old ids replaced by the new ones, wherever a whole
// string is an id.
func (x *export) rename(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // decoded from JSON
	}
	var tree any
	if err := unmarshal(raw, &tree); err != nil {
		panic(err)
	}
	out, err := json.Marshal(x.walk(tree))
	if err != nil {
		panic(err)
	}
	return out
}

func (x *export) walk(v any) any {
	switch v := v.(type) {
	case string:
		if id, ok := x.ids[v]; ok {
			return id
		}
	case []any:
		for i := range v {
			v[i] = x.walk(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = x.walk(v[k])
		}
	}
	return v
}

const (
	prefixLength = 4 + 12 // "msg_" and the time, by which ids sort
	randomLength = 14
	digits       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// otherID returns a new id that sorts like the given one.
func otherID(id string) string {
	if len(id) < prefixLength {
		return id + random()
	}
	return id[:prefixLength] + random()
}

// sessionID returns an id for a session. OpenCode's sort from new to old.
func sessionID(now time.Time) string {
	return fmt.Sprintf("ses_%012x%s", ^uint64(now.UnixMilli()<<12|1)&(1<<48-1), random())
}

func random() string {
	id := make([]byte, randomLength)
	rand.Read(id) // never fails
	for i, b := range id {
		id[i] = digits[int(b)%len(digits)]
	}
	return string(id)
}
