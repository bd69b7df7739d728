package checkpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// linkTag begins the input of the hash that is a link of the log;
// docs/format/proof.md lists the other tags.
const linkTag = 3

// NextLink returns the link of the log after an entry, given the link before it and
// the digest of the entry. The link before the first entry is the zero id. The link
// after an entry reveals whether any entry up to it was changed, removed or added.
func NextLink(before, digest blob.ID) blob.ID {
	h := sha256.New()
	h.Write([]byte{linkTag})
	h.Write(before[:])
	h.Write(digest[:])
	return blob.ID(h.Sum(nil))
}

// Digest returns what stands for a row in the chain of the log and in proofs: the
// SHA-256 of the value that was first written. original is the field of that name.
func Digest(value, original []byte) blob.ID {
	if id, err := blob.IDFromBytes(original); err == nil {
		return id
	}
	return blob.Sum(value)
}

// rewritten returns the original field for a row that is about to be rewritten.
func rewritten(value, original []byte) []byte {
	id := Digest(value, original)
	return id[:]
}

// logEnd is the end of the log.
type logEnd struct {
	seq uint64 // of the last entry, 0 if there is none
	// link is that after the last entry. It is unknown if an entry cannot be read: a
	// damaged log does not prevent a rewind.
	link  blob.ID
	known bool
}

// LogEnd returns the number of entries in the log of operations and the link after the
// last one.
func (s *Service) LogEnd(ctx context.Context) (uint64, blob.ID, error) {
	end, err := s.logEnd(ctx)
	if err == nil && !end.known {
		err = bad("an entry of the log of operations cannot be read")
	}
	return end.seq, end.link, err
}

func (s *Service) logEnd(ctx context.Context) (logEnd, error) {
	end, whole, err := s.readLogEnd(ctx, 1)
	if err == nil && !whole {
		// Releases without links wrote the last entry: compute the link from the
		// entries before. The next entry has one again.
		end, _, err = s.readLogEnd(ctx, 0)
	}
	if err == nil {
		return end, nil
	}
	if fault.Of(err) != fault.Damaged {
		return logEnd{}, fmt.Errorf("read log of operations: %w", err)
	}
	seq, err := s.lastOperation(ctx)
	return logEnd{seq: seq}, err
}

// readLogEnd reads at most limit entries, from the last one back to the first or to
// one with a link. whole reports whether it got that far.
func (s *Service) readLogEnd(ctx context.Context, limit int) (end logEnd, whole bool, err error) {
	var digests []blob.ID // newest first
	var link blob.ID
	for row, err := range s.rows.Scan(ctx, keyspace.Operations(), kv.ScanOptions{Reverse: true, Limit: limit}) {
		if err != nil {
			return end, false, err
		}
		var m stetv1.OperationRecord
		if err := proto.Unmarshal(row.Value, &m); err != nil {
			return end, false, bad("row %q: %v", row.Key, err)
		}
		if end.seq == 0 {
			if end.seq, err = keyspace.ParseNumber(keyspace.Last(row.Key)); err != nil {
				return end, false, errors.Join(ErrBadRecord, err)
			}
		}
		digests = append(digests, Digest(row.Value, m.Original))
		if link, err = blob.IDFromBytes(m.Chain); err == nil {
			whole = true
			break
		}
	}
	for _, digest := range slices.Backward(digests) {
		link = NextLink(link, digest)
	}
	end.link, end.known = link, true
	return end, whole || len(digests) < limit, nil
}
