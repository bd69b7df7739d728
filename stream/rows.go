package stream

import (
	"fmt"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// recordFormat is the format of the rows that this release reads and writes.
const recordFormat = 1

func decodeRecord(row kv.Row) (*stetv1.StreamRecord, error) {
	rec := new(stetv1.StreamRecord)
	if err := rowformat.Decode(row, rec, recordFormat); err != nil {
		return nil, err
	}
	switch {
	case keyspace.Stream(rec.Path) != row.Key || CheckPath(rec.Path) != nil:
		return nil, fmt.Errorf("%w: row %q is of stream %q", kv.ErrCorrupt, row.Key, rec.Path)
	case rec.Id == "" || len(rec.Id) > keyspace.MaxID:
		return nil, fmt.Errorf("%w: row %q has no id", kv.ErrCorrupt, row.Key)
	case rec.Tail.GetSeq() > maxOffset || rec.Tail.GetBytes() > maxOffset:
		return nil, fmt.Errorf("%w: row %q ends at %d", kv.ErrCorrupt, row.Key, rec.Tail.GetSeq())
	case rec.CreatedMs < 0 || rec.AccessedMs < 0:
		return nil, fmt.Errorf("%w: row %q has a time before 1970", kv.ErrCorrupt, row.Key)
	}
	end := uint64(0)
	for _, part := range rec.Inherited {
		if part.GetId() == "" || part.GetEnd() <= end || part.GetEnd() > rec.Tail.GetSeq() {
			return nil, fmt.Errorf("%w: row %q inherits up to %d of %d", kv.ErrCorrupt, row.Key, part.GetEnd(), rec.Tail.GetSeq())
		}
		end = part.GetEnd()
	}
	return rec, nil
}

func decodeAppend(row kv.Row) (*stetv1.StreamAppend, error) {
	rec := new(stetv1.StreamAppend)
	if err := rowformat.Decode(row, rec, recordFormat); err != nil {
		return nil, err
	}
	n, err := keyspace.ParseNumber(keyspace.Last(row.Key))
	if err != nil || n != rec.Seq || n == 0 || n > maxOffset || rec.Start > maxOffset {
		return nil, fmt.Errorf("%w: row %q says append %d", kv.ErrCorrupt, row.Key, rec.Seq)
	}
	if len(rec.Blob) == 0 && len(rec.Data) == 0 {
		return nil, fmt.Errorf("%w: row %q has no content", kv.ErrCorrupt, row.Key)
	}
	if len(rec.Blob) > 0 {
		if _, err := blob.IDFromBytes(rec.Blob); err != nil || len(rec.Data) > 0 || rec.BlobSize == 0 || rec.BlobSize > MaxAppend {
			return nil, fmt.Errorf("%w: row %q has no blob of that size", kv.ErrCorrupt, row.Key)
		}
	}
	return rec, nil
}

func decodeProducer(row kv.Row) (*stetv1.StreamProducer, error) {
	rec := new(stetv1.StreamProducer)
	if err := rowformat.Decode(row, rec, recordFormat); err != nil {
		return nil, err
	}
	if rec.Id != keyspace.Last(row.Key) {
		return nil, fmt.Errorf("%w: row %q is of producer %q", kv.ErrCorrupt, row.Key, rec.Id)
	}
	return rec, nil
}

func decodeAccess(row kv.Row) (*stetv1.StreamAccess, error) {
	rec := new(stetv1.StreamAccess)
	if err := rowformat.Decode(row, rec, recordFormat); err != nil {
		return nil, err
	}
	if rec.AccessedMs < 0 {
		return nil, fmt.Errorf("%w: row %q has a time before 1970", kv.ErrCorrupt, row.Key)
	}
	return rec, nil
}

// size is the number of bytes that an append takes in the stream.
func size(rec *stetv1.StreamAppend) uint64 {
	if len(rec.Blob) > 0 {
		return rec.BlobSize
	}
	return uint64(len(rec.Data))
}

// end is the place after an append.
func end(rec *stetv1.StreamAppend) Offset {
	return Offset{Seq: rec.Seq, Bytes: rec.Start + size(rec)}
}

// Needs returns the keys of the rows that must exist because of a row, for a check:
// they are written and removed in the same commits. It returns none for rows of other
// packages.
func Needs(row kv.Row) ([]string, error) {
	switch {
	case keyspace.Streams().Contains(row.Key):
		rec, err := decodeRecord(row)
		if err != nil {
			return nil, err
		}
		var needs []string
		for _, part := range inherited(rec, rec.Tail.GetSeq()) {
			needs = append(needs, keyspace.StreamAppend(part.Id, part.End))
		}
		if rec.Fork != nil {
			needs = append(needs, keyspace.Stream(rec.Fork.Source))
		}
		return needs, nil
	case keyspace.AllStreamAppends().Contains(row.Key):
		rec, err := decodeAppend(row)
		if err != nil {
			return nil, err
		}
		if rec.Path != "" {
			return []string{keyspace.Stream(rec.Path)}, nil
		}
		return []string{keyspace.StreamAppend(keyspace.Parts(row.Key)[2], rec.Seq-1)}, nil
	}
	return nil, nil
}

// CheckRow returns the error that a reader of this package would return for a row,
// and nil for rows of other packages.
func CheckRow(row kv.Row) error {
	var err error
	switch {
	case keyspace.Streams().Contains(row.Key):
		_, err = decodeRecord(row)
	case keyspace.AllStreamAppends().Contains(row.Key):
		_, err = decodeAppend(row)
	case keyspace.AllStreamProducers().Contains(row.Key):
		_, err = decodeProducer(row)
	case keyspace.AllStreamAccesses().Contains(row.Key):
		_, err = decodeAccess(row)
	}
	return err
}
