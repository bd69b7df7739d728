package cursor

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
)

// inlineValue is the size up to which a value is read through SQLite's memory as a
// whole. Larger ones are read and written in pieces: the memory of a connection is
// limited, and running out of it breaks the connection.
const inlineValue = 1 << 20

const pieceSize = 256 << 10

// valueColumns selects the columns that columnValue reads.
func (t table) valueColumns() string {
	return fmt.Sprintf("rowid, typeof(%[1]s), octet_length(%[1]s), CASE WHEN octet_length(%[1]s) <= %[2]d THEN %[1]s END",
		t.value, inlineValue)
}

// columnValue copies a value out of SQLite's memory. col is the first of the
// columns that valueColumns selects.
func (c *conn) columnValue(s *sqlite3.Stmt, t table, col int) (Value, error) {
	v := Value{Class: classByName[s.ColumnText(col+1)]}
	size := s.ColumnInt64(col + 2)
	switch {
	case v.Class == ClassNull:
		return v, nil
	case size > int64(c.maxValue):
		return v, fmt.Errorf("%w: value of %d bytes in %s", blob.ErrTooLarge, size, t.name)
	case size > inlineValue:
		var err error
		v.Data, err = c.readPieces(t, s.ColumnInt64(col), size)
		return v, err
	case v.Class == ClassBlob:
		v.Data = bytes.Clone(s.ColumnRawBlob(col + 3))
	default:
		v.Data = bytes.Clone(s.ColumnRawText(col + 3))
	}
	if int64(len(v.Data)) != size {
		return v, fmt.Errorf("%w: value of %d bytes has %d", ErrCorrupt, size, len(v.Data))
	}
	return v, nil
}

func (c *conn) readPieces(t table, rowid, size int64) ([]byte, error) {
	b, err := c.OpenBlob("main", t.name, t.value, rowid, false)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if b.Size() != size {
		return nil, fmt.Errorf("%w: value of %d bytes has %d", ErrCorrupt, size, b.Size())
	}
	// Grow while reading: the size may be wrong.
	var data bytes.Buffer
	piece := make([]byte, pieceSize)
	for {
		n, err := b.Read(piece)
		data.Write(piece[:n])
		if errors.Is(err, io.EOF) {
			return data.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// putValue inserts or replaces a row with a value of class BLOB.
func (c *conn) putValue(t table, key string, data []byte) error {
	s, err := c.stmt("INSERT OR REPLACE INTO " + t.name + " (" + t.key + ", " + t.value + ") VALUES (?1, ?2)")
	if err != nil {
		return err
	}
	if err := s.BindText(1, key); err != nil {
		return err
	}
	if len(data) <= inlineValue {
		err = s.BindBlob(2, data)
	} else {
		err = s.BindZeroBlob(2, int64(len(data)))
	}
	if err = errors.Join(err, s.Exec()); err != nil || len(data) <= inlineValue {
		return err
	}
	return c.writePieces(t, c.LastInsertRowID(), data)
}

func (c *conn) writePieces(t table, rowid int64, data []byte) error {
	b, err := c.OpenBlob("main", t.name, t.value, rowid, true)
	if err != nil {
		return err
	}
	for len(data) > 0 && err == nil {
		n := min(len(data), pieceSize)
		_, err = b.Write(data[:n])
		data = data[n:]
	}
	return errors.Join(err, b.Close())
}
