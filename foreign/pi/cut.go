package pi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/newfile"
)

// Cut writes the branch that ends with a turn as a new session beside the old one, as pi
// does itself when it forks.
func (*Adapter) Cut(ctx context.Context, h foreign.Host, s foreign.Session, after foreign.Turn) (foreign.Continuation, error) {
	if after.Cut == "" {
		return foreign.Continuation{}, fmt.Errorf("%w: the turn has no entries", foreign.ErrCannotCut)
	}
	old, err := readHeader(ctx, s.Path)
	if err != nil {
		return foreign.Continuation{}, fmt.Errorf("%w: %w", foreign.ErrCannotCut, err)
	}
	lines, err := branch(ctx, s.Path, after.Cut)
	if err != nil {
		return foreign.Continuation{}, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	id, err := uuid.NewV7() // as pi names its sessions
	if err != nil {
		return foreign.Continuation{}, err
	}
	head := header{Type: "session", Version: old.Version, ID: id.String(), Timestamp: now, Cwd: old.Cwd, ParentSession: s.Path}
	stamp := strings.NewReplacer(":", "-", ".", "-").Replace(now.Format("2006-01-02T15:04:05.000Z"))
	path := filepath.Join(filepath.Dir(s.Path), stamp+"_"+head.ID+".jsonl")
	if err := newfile.Create(path, func(w io.Writer) error { return write(w, head, s.Path, lines) }); err != nil {
		return foreign.Continuation{}, err
	}
	program := "pi"
	if found := h.Program("pi"); found != "" {
		program = found
	}
	return foreign.Continuation{
		Session: head.ID, Command: []string{program, "--session", path}, Dir: old.Cwd, Created: []string{path},
	}, nil
}

// span is where an entry stands in a file, and the entry that it continues.
type span struct {
	parent      string
	offset, end int64
}

// branch returns the entries from the root to a leaf.
func branch(ctx context.Context, path, leaf string) ([]span, error) {
	nodes := map[string]span{}
	for line, err := range jsonl.Lines(ctx, path, 0) {
		if foreign.Unreadable(err) && !errors.Is(err, os.ErrNotExist) {
			continue // it fails below if the branch needs it
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", foreign.ErrCannotCut, err)
		}
		if e, ok := decode(line.Data); ok && e.Type != "session" && e.ID != "" {
			nodes[e.ID] = span{e.ParentID, line.Offset, line.Offset + line.Size}
		}
	}
	var found []span
	for id := leaf; id != ""; {
		node, ok := nodes[id]
		if !ok || len(found) > len(nodes) {
			return nil, fmt.Errorf("%w: entry %s is not in the session or cannot be read", foreign.ErrCannotCut, id)
		}
		found = append(found, node)
		id = node.parent
	}
	slices.Reverse(found)
	return found, nil
}

// write writes a header and the bytes of entries.
func write(w io.Writer, head header, from string, lines []span) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	first, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s\n", first); err != nil {
		return err
	}
	for _, l := range lines {
		if _, err := io.Copy(w, io.NewSectionReader(src, l.offset, l.end-l.offset)); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return nil
}
