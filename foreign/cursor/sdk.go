package cursor

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
)

// Run is one run of an SDK agent.
type Run struct {
	ID, AgentID, Status string
	Turn                int
	Created, Updated    time.Time
	// Start and Latest are the checkpoints before and after, or zero.
	Start, Latest blob.ID
	Result        string
}

// Event is one event of a run.
type Event struct {
	RunID, Type, Offset string
	Seq                 int64
	Created             time.Time
	// Payload is JSON, or nil if PayloadRef names it.
	Payload    json.RawMessage
	PayloadRef string
}

const (
	agentSQL = "SELECT agent_id, workspace_ref, name, created_at, updated_at, latest_checkpoint_ref_json, status FROM agents"
	runSQL   = "SELECT run_id, agent_id, status, turn_number, created_at, updated_at, start_checkpoint_ref_json, latest_checkpoint_ref_json, result FROM runs WHERE agent_id = ?1 AND turn_number > ?2 ORDER BY turn_number"
	eventSQL = "SELECT run_id, event_type, offset, seq, created_at, payload_json, payload_ref FROM run_events WHERE run_id = ?1 AND seq > ?2 ORDER BY seq"
)

func (s *Store) sdkHeaders(ctx context.Context) iter.Seq2[Header, error] {
	return func(yield func(Header, error) bool) {
		for last, full := "", true; full; {
			var batch []Header
			err := s.main.read(ctx, func(c *conn) (err error) {
				batch, full, err = readBatch(c, agentSQL+" WHERE agent_id > ?1 ORDER BY agent_id",
					func(st *sqlite3.Stmt) error { return st.BindText(1, last) }, sdkHeader)
				return err
			})
			if err != nil {
				yield(Header{}, err)
				return
			}
			for _, h := range batch {
				last = h.ID
				if !yield(h, nil) {
					return
				}
			}
		}
	}
}

func sdkHeader(st *sqlite3.Stmt) Header {
	return Header{
		ID: st.ColumnText(0), Workspace: st.ColumnText(1), Title: st.ColumnText(2),
		Created: parseTime(st.ColumnText(3)), Updated: parseTime(st.ColumnText(4)),
	}
}

// readBatch reads the rows of a statement until the budget is spent.
func readBatch[T any](c *conn, sql string, bind func(*sqlite3.Stmt) error, decode func(*sqlite3.Stmt) T) (batch []T, full bool, err error) {
	st, err := c.stmt(sql)
	if err != nil {
		return nil, false, err
	}
	if err := bind(st); err != nil {
		return nil, false, err
	}
	var spent budget
	for st.Step() {
		batch = append(batch, decode(st))
		if spent.spent(1024) {
			return batch, true, nil
		}
	}
	return batch, false, st.Err()
}

func (s *Store) sdkConversation(ctx context.Context, id string) (*Conversation, error) {
	var conv *Conversation
	var root blob.ID
	err := s.main.read(ctx, func(c *conn) error {
		st, err := c.stmt(agentSQL + " WHERE agent_id = ?1")
		if err != nil {
			return err
		}
		if err := st.BindText(1, id); err != nil {
			return err
		}
		conv, root = nil, blob.ID{}
		if st.Step() {
			conv = &Conversation{Header: sdkHeader(st), Agentic: true}
			if root, err = checkpointRef(st.ColumnBlob(5, nil)); err != nil {
				conv.StateErr = &DataLossError{Source: "latest_checkpoint_ref_json", Err: err}
			}
		}
		return st.Err()
	})
	if err != nil {
		return nil, err
	}
	if conv == nil {
		return nil, fmt.Errorf("read conversation %s: %w", id, ErrNotFound)
	}
	return conv, s.hydrateAgent(ctx, conv, root)
}

// hydrateAgent reads an agent's state from its own store: from the root in the index
// or, if there is none, from the root in the store.
func (s *Store) hydrateAgent(ctx context.Context, conv *Conversation, root blob.ID) error {
	source := "latest_checkpoint_ref_json"
	db, err := s.agents.open(ctx, agentDir(conv.ID))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !root.IsZero() {
			conv.StateErr = &DataLossError{Source: source, Err: err}
		}
		return nil
	}
	if meta, err := readAgentMeta(ctx, db); err == nil {
		conv.Mode = meta.Mode
		if root.IsZero() {
			root, source = meta.LatestRoot, "latestRootBlobId"
		}
	}
	return hydrateRoot(ctx, conv, agentBlobs(db), root, source)
}

// agentDir is the name of the directory that holds an agent's store.
func agentDir(agent string) string { return "agent-" + blob.Sum([]byte(agent)).String() }

// checkpointRef reads the id in {"blobId": hex, …}, or zero.
func checkpointRef(raw []byte) (blob.ID, error) {
	doc, err := ParseDocument(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return blob.ID{}, nil
	}
	if err != nil {
		return blob.ID{}, err
	}
	return blob.ParseID(doc.Text("blobId"))
}

// Runs yields the runs of an SDK agent in order of their turns.
func (s *Store) Runs(ctx context.Context, agent string) iter.Seq2[Run, error] {
	if s.kind == KindLines {
		return s.lines.runs(ctx, agent)
	}
	return pages(ctx, s, "runs", runSQL, agent, 0, decodeRun, func(r Run) int64 { return int64(r.Turn) })
}

// Events yields the events of a run after the sequence number after.
func (s *Store) Events(ctx context.Context, run string, after int64) iter.Seq2[Event, error] {
	if s.kind == KindLines {
		return s.lines.events(ctx, run, after)
	}
	return pages(ctx, s, "run_events", eventSQL, run, after, decodeEvent, func(e Event) int64 { return e.Seq })
}

// pages yields the rows of a statement bound to an owner and a number, in short
// transactions; number returns the number of a row.
func pages[T any](ctx context.Context, s *Store, table, sql, owner string, after int64,
	decode func(*sqlite3.Stmt) T, number func(T) int64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for full := s.tables[table] && s.kind == KindSDK; full; {
			var batch []T
			err := s.main.read(ctx, func(c *conn) (err error) {
				batch, full, err = readBatch(c, sql, func(st *sqlite3.Stmt) error {
					if err := st.BindText(1, owner); err != nil {
						return err
					}
					return st.BindInt64(2, after)
				}, decode)
				return err
			})
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range batch {
				if after = number(item); !yield(item, nil) {
					return
				}
			}
		}
	}
}

func decodeRun(st *sqlite3.Stmt) Run {
	r := Run{
		ID: st.ColumnText(0), AgentID: st.ColumnText(1), Status: st.ColumnText(2), Turn: st.ColumnInt(3),
		Created: parseTime(st.ColumnText(4)), Updated: parseTime(st.ColumnText(5)), Result: st.ColumnText(8),
	}
	// An invalid reference counts as none; the blobs are listed anyway.
	r.Start, _ = checkpointRef(st.ColumnBlob(6, nil))
	r.Latest, _ = checkpointRef(st.ColumnBlob(7, nil))
	return r
}

func decodeEvent(st *sqlite3.Stmt) Event {
	return Event{
		RunID: st.ColumnText(0), Type: st.ColumnText(1), Offset: st.ColumnText(2), Seq: st.ColumnInt64(3),
		Created: parseTime(st.ColumnText(4)), Payload: st.ColumnBlob(5, nil), PayloadRef: st.ColumnText(6),
	}
}
