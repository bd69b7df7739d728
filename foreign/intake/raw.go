package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// The raw record of a session is kept as the files of a separate state, under the head
// of a message id that no agent uses: collectors keep it, checks cover it, and deleting
// the conversation deletes it. A file is a row of segments, "raw/{generation}/{name}@{offset}",
// so that a session which grows adds only its new bytes. An agent that rewrites a file
// begins a new generation of it; the earlier one stays.
const (
	rawMessage = "foreign:source"
	rawPrefix  = "raw/"
	// segmentSize is the maximum size of a segment. A last segment that is smaller than
	// smallSegment is replaced by a longer one when the file grows.
	segmentSize  = 1 << 20
	smallSegment = 64 << 10
	// rawBytes is how many bytes share a commit. After a killed pass, the next one
	// continues after the last commit.
	rawBytes = 32 << 20
)

// rawState is the raw record of a session in a store.
type rawState struct {
	blobs blob.Store
	rows  kv.Store
	conv  string
	root  blob.ID // as stored, zero if nothing is
	state *agentv1.ConversationStateStructure
	fresh []blob.ID // put and not committed
	bytes int64     // put in this pass
	after int64     // of bytes, before the last commit
	guard kv.Expect // of the commits
}

func openRaw(ctx context.Context, blobs blob.Store, rows kv.Store, conv string) (*rawState, error) {
	r := &rawState{blobs: blobs, rows: rows, conv: conv,
		state: &agentv1.ConversationStateStructure{FileStatesV2: map[string]*agentv1.FileStateStructure{}}}
	root, err := conversation.New(blobs, rows, nil).MessageHead(ctx, conv, rawMessage)
	if errors.Is(err, conversation.ErrNotFound) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := blobs.Get(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("raw record of %s: %w", conv, err)
	}
	if err := proto.Unmarshal(data, r.state); err != nil {
		return nil, fmt.Errorf("raw record of %s: %w: %w", conv, kv.ErrCorrupt, err)
	}
	if r.state.FileStatesV2 == nil {
		r.state.FileStatesV2 = map[string]*agentv1.FileStateStructure{}
	}
	r.root = root
	return r, nil
}

func unreadable(err error) error { return fmt.Errorf("%w: %w", foreign.ErrUnreadable, err) }

// segments returns the segments of the newest generation of a file, by offset.
func (r *rawState) segments(name string) (generation int, found map[int64]blob.ID) {
	generation, found = 1, map[int64]blob.ID{}
	for key, entry := range r.state.FileStatesV2 {
		g, n, at, ok := parseSegment(key)
		if !ok || n != name || g < generation {
			continue
		}
		if g > generation {
			generation, found = g, map[int64]blob.ID{}
		}
		if id, err := blob.IDFromBytes(entry.GetContent()); err == nil {
			found[at] = id
		}
	}
	return generation, found
}

func segmentKey(generation int, name string, at int64) string {
	return fmt.Sprintf("%s%d/%s@%016x", rawPrefix, generation, name, at)
}

func parseSegment(key string) (generation int, name string, at int64, ok bool) {
	rest, ok := strings.CutPrefix(key, rawPrefix)
	if !ok {
		return 0, "", 0, false
	}
	number, rest, ok := strings.Cut(rest, "/")
	cut := strings.LastIndexByte(rest, '@')
	if !ok || cut < 0 {
		return 0, "", 0, false
	}
	generation, err := strconv.Atoi(number)
	at, err2 := strconv.ParseInt(rest[cut+1:], 16, 64)
	return generation, rest[:cut], at, err == nil && err2 == nil
}

// add stores what is new in a file.
func (r *rawState) add(ctx context.Context, f foreign.File) error {
	src, size, err := open(f)
	if err != nil {
		return unreadable(err)
	}
	defer src.Close()
	generation, have := r.segments(valid(f.Name))
	at, err := r.resume(ctx, src, size, have)
	if errors.Is(err, foreign.ErrMark) {
		generation, at, have = generation+1, 0, nil
	} else if err != nil {
		return err
	}
	buf := make([]byte, segmentSize)
	for at < size {
		n, err := src.ReadAt(buf[:min(segmentSize, size-at)], at)
		if n == 0 {
			if err == io.EOF {
				return nil // it was cut meanwhile; the next pass sees that
			}
			return unreadable(err)
		}
		b := blob.New(bytes.Clone(buf[:n]))
		if have[at] == b.ID {
			at += int64(n)
			continue // the end of a file whose size was not known
		}
		if err := r.put(ctx, b); err != nil {
			return err
		}
		r.state.FileStatesV2[segmentKey(generation, valid(f.Name), at)] = &agentv1.FileStateStructure{Content: b.ID.Bytes()}
		at += int64(n)
		if r.bytes-r.after >= rawBytes {
			if err := r.commit(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// resume returns where reading a file continues. It returns foreign.ErrMark if the
// file no longer begins with what was stored, as far as the last segment shows.
func (r *rawState) resume(ctx context.Context, src io.ReaderAt, size int64, have map[int64]blob.ID) (int64, error) {
	last := int64(-1)
	for at := range have {
		last = max(last, at)
	}
	if last < 0 {
		return 0, nil
	}
	data, err := r.blobs.Get(ctx, have[last])
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		delete(have, last)
		return last, nil // stored again
	}
	if err != nil {
		return 0, err
	}
	if last+int64(len(data)) > size {
		return 0, foreign.ErrMark
	}
	now := make([]byte, len(data))
	if _, err := src.ReadAt(now, last); foreign.Unreadable(err) {
		return 0, err // what was stored is more than what can be read
	} else if err != nil && err != io.EOF || !bytes.Equal(now, data) {
		return 0, foreign.ErrMark
	}
	if len(data) < smallSegment && last+int64(len(data)) < size {
		return last, nil
	}
	return last + int64(len(data)), nil
}

func (r *rawState) put(ctx context.Context, b blob.Blob) error {
	r.fresh, r.bytes = append(r.fresh, b.ID), r.bytes+int64(len(b.Data))
	return r.blobs.Put(ctx, b)
}

// commit makes what was added part of the conversation.
func (r *rawState) commit(ctx context.Context) error {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(r.state)
	if err != nil {
		return err
	}
	root := blob.New(data)
	if root.ID == r.root || len(r.state.FileStatesV2) == 0 {
		return nil
	}
	if err := r.put(ctx, root); err != nil {
		return err
	}
	err = r.rows.Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{r.guard},
		Set:    []kv.Set{{Key: keyspace.MessageHead(r.conv, rawMessage), Value: []byte(root.ID.String())}},
		Refs:   r.fresh,
	})
	if err != nil {
		return err
	}
	r.root, r.fresh, r.after = root.ID, nil, r.bytes
	return nil
}
