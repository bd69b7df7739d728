package cursor

import (
	"context"
	"iter"

	"github.com/ncruces/go-sqlite3"
)

const headerTable = "composerHeaders"

const headerColumns = "SELECT composerId, workspaceId, createdAt, lastUpdatedAt, isArchived, isSubagent, value FROM " + headerTable

// tableHeader returns an entry of the table of headers in newer releases.
func (s *Store) tableHeader(ctx context.Context, id string) (h Header, found bool, err error) {
	if !s.tables[headerTable] {
		return Header{}, false, nil
	}
	err = s.main.read(ctx, func(c *conn) error {
		h, found = Header{}, false
		st, err := c.stmt(headerColumns + " WHERE composerId = ?1")
		if err != nil {
			return err
		}
		if err := st.BindText(1, id); err != nil {
			return err
		}
		if st.Step() {
			h, found = headerOf(st), true
		}
		return st.Err()
	})
	return h, found, err
}

// tableHeaders yields all entries of that table by id, in short transactions.
func (s *Store) tableHeaders(ctx context.Context) iter.Seq2[Header, error] {
	return func(yield func(Header, error) bool) {
		if !s.tables[headerTable] {
			return
		}
		for last, full := "", true; full; {
			var batch []Header
			err := s.main.read(ctx, func(c *conn) error {
				var err error
				batch, full, err = c.headerBatch(last)
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

func (c *conn) headerBatch(after string) (batch []Header, full bool, err error) {
	st, err := c.stmt(headerColumns + " WHERE composerId > ?1 ORDER BY composerId")
	if err != nil {
		return nil, false, err
	}
	if err := st.BindText(1, after); err != nil {
		return nil, false, err
	}
	var spent budget
	for st.Step() {
		h := headerOf(st)
		if h.ID <= after {
			return nil, false, ErrCorrupt
		}
		after = h.ID
		batch = append(batch, h)
		if spent.spent(512) {
			return batch, true, nil
		}
	}
	return batch, false, st.Err()
}

func headerOf(st *sqlite3.Stmt) Header {
	h := Header{
		ID: st.ColumnText(0), Workspace: st.ColumnText(1),
		Created: millis(st.ColumnFloat(2)), Updated: millis(st.ColumnFloat(3)),
		Archived: st.ColumnBool(4), Subagent: st.ColumnBool(5),
	}
	if doc, err := ParseDocument(st.ColumnBlob(6, nil)); err == nil {
		h = mergeHeader(h, decodeHeader(h.ID, doc))
	}
	return h
}
