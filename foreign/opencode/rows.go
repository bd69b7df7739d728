package opencode

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/foreign"
)

// maxData is the longest value that is read.
const maxData = 8 << 20

// turnIndex has only the ids of a turn: its user message and the messages that answer
// it, in order.
type turnIndex struct {
	id       string
	messages []string
}

// readIndex reads which messages a session has. An answer belongs to the user message that
// it names, or to the one before it.
func readIndex(ctx context.Context, d *database, session string) (index []*turnIndex, err error) {
	err = d.read(ctx, func(c *sqlite3.Conn) error {
		index = nil
		users := map[string]*turnIndex{}
		return query(c, `SELECT id, CASE WHEN json_valid(data) THEN coalesce(data ->> '$.role', '') ELSE '' END,
			CASE WHEN json_valid(data) THEN coalesce(data ->> '$.parentID', '') ELSE '' END
			FROM message WHERE session_id = ? ORDER BY time_created, id`, func(r *sqlite3.Stmt) error {
			id, role, parent := r.ColumnText(0), r.ColumnText(1), r.ColumnText(2)
			if role == "user" {
				t := &turnIndex{id: id, messages: []string{id}}
				index, users[id] = append(index, t), t
				return nil
			}
			t := users[parent]
			if t == nil && len(index) > 0 {
				t = index[len(index)-1]
			}
			if t != nil { // else it is before the first turn
				t.messages = append(t.messages, id)
			}
			return nil
		}, session)
	})
	return index, err
}

// row is a row of the tables message and part.
type row struct {
	table, id, message string
	created, updated   int64
	size               int64
	data               []byte // nil if it is too long
}

// line is the row as a line of JSON.
func (r row) line() []byte {
	out := struct {
		Table   string `json:"table"`
		ID      string `json:"id"`
		Message string `json:"message_id,omitempty"`
		Created int64  `json:"time_created"`
		Updated int64  `json:"time_updated"`
		Data    any    `json:"data"`
	}{r.table, r.id, r.message, r.created, r.updated, json.RawMessage(r.data)}
	if r.data == nil || !json.Valid(r.data) {
		out.Data = string(r.data)
	}
	line, _ := json.Marshal(out) // strings, numbers and valid JSON
	return line
}

// A value that is too long is not read; its length is.
var (
	messageRows = fmt.Sprintf(`SELECT id, '', time_created, time_updated, octet_length(data), CASE WHEN octet_length(data) <= %d THEN data END
		FROM message WHERE id = ?`, maxData)
	partRows = fmt.Sprintf(`SELECT id, message_id, time_created, time_updated, octet_length(data), CASE WHEN octet_length(data) <= %d THEN data END
		FROM part WHERE message_id = ? ORDER BY id`, maxData)
)

// readRows reads the rows of a turn: each message and then its parts. Ids sort by time.
func readRows(ctx context.Context, d *database, t *turnIndex) (rows []row, err error) {
	err = d.read(ctx, func(c *sqlite3.Conn) error {
		rows = nil
		for _, id := range t.messages {
			err := query(c, messageRows, collect(&rows, "message"), id)
			if err != nil {
				return err
			}
			err = query(c, partRows, collect(&rows, "part"), id)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%w: message %s is gone", foreign.ErrUnreadable, t.id)
	}
	return rows, err
}

func collect(rows *[]row, table string) func(*sqlite3.Stmt) error {
	return func(r *sqlite3.Stmt) error {
		*rows = append(*rows, row{
			table: table, id: r.ColumnText(0), message: r.ColumnText(1), created: r.ColumnInt64(2), updated: r.ColumnInt64(3),
			size: r.ColumnInt64(4), data: r.ColumnBlob(5, nil),
		})
		return nil
	}
}
