package codex

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/newfile"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// Cut writes a copy of the conversation until the end of a turn, under a new id. The
// copy is complete even if the session is spread over several files.
func (Adapter) Cut(ctx context.Context, h foreign.Host, s foreign.Session, after foreign.Turn) (foreign.Continuation, error) {
	parts, err := libraryOf(s.Path).pieces(ctx, s)
	if err != nil {
		return foreign.Continuation{}, err
	}
	if parts[len(parts)-1].parent != "" {
		return foreign.Continuation{}, fmt.Errorf("%w: codex does not resume a subagent", foreign.ErrCannotCut)
	}
	last, end, err := find(ctx, parts, after.Cut)
	if err != nil {
		return foreign.Continuation{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return foreign.Continuation{}, err
	}
	now := time.Now()
	dir := filepath.Join(home(h), sessionsDir, now.Format("2006"), now.Format("01"), now.Format("02"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return foreign.Continuation{}, err
	}
	path := filepath.Join(dir, "rollout-"+now.Format("2006-01-02T15-04-05")+"-"+id.String()+".jsonl")
	err = newfile.Create(path, func(w io.Writer) error {
		c := &copier{w: w, id: id.String(), renumber: len(last.before) > 0}
		for _, p := range last.before {
			if err := c.piece(ctx, p, noEnd); err != nil {
				return err
			}
		}
		return c.piece(ctx, last, end)
	})
	if err != nil {
		return foreign.Continuation{}, fmt.Errorf("cut session %s: %w", s.ID, err)
	}
	return foreign.Continuation{
		Session: id.String(), Command: []string{"codex", "resume", id.String()},
		Dir: firstOf(s.Workspace, last.cwd), Created: []string{path},
	}, nil
}

// find returns the part in which a turn ends, and where.
func find(ctx context.Context, parts []piece, turn string) (piece, int64, error) {
	for _, p := range parts {
		end := int64(0)
		r := &reader{whole: true}
		r.b = turns.New("", func(t foreign.Turn, err error) bool {
			if err != nil || t.ID != turn || turn == "" {
				return true
			}
			if end = r.done; end == 0 {
				end = r.end // the record does not say where it ended
			}
			return false
		})
		alone := p
		alone.rewound = false
		if r.read(ctx, []piece{alone}, place{}); end > 0 {
			return p, end, nil
		}
		if ctx.Err() != nil {
			return piece{}, 0, ctx.Err()
		}
	}
	return piece{}, 0, fmt.Errorf("%w: the session has no turn %q", foreign.ErrCannotCut, turn)
}

// copier copies parts of sessions into one.
type copier struct {
	w        io.Writer
	id       string // of the copy
	renumber bool   // lines get new ordinals, since several files become one
	lines    int64
}

// piece copies the lines of a file up to an offset, and replaces the old id with the
// new one.
func (c *copier) piece(ctx context.Context, p piece, end int64) error {
	f, err := jsonl.Open(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(io.LimitReader(f, end), 64<<10)
	old, id := []byte(`"`+p.id+`"`), []byte(`"`+c.id+`"`)
	for {
		raw, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return unreadable(err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if raw = bytes.TrimRight(raw, "\r\n"); len(raw) > 0 {
			if !p.has(raw) {
				return nil
			}
			if err := c.line(bytes.ReplaceAll(raw, old, id)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// has reports whether a line is before the end of a part.
func (p piece) has(raw []byte) bool {
	var l line
	return p.end == noEnd || json.Unmarshal(raw, &l) != nil || l.ordinal() < p.end
}

// line writes one line. The description of a session stands only at the beginning.
func (c *copier) line(raw []byte) error {
	var l line
	if c.renumber && json.Unmarshal(raw, &l) == nil {
		if c.lines > 0 && l.Type == "session_meta" {
			return nil
		}
		raw = withOrdinal(raw, c.lines)
	}
	c.lines++
	_, err := c.w.Write(append(raw, '\n'))
	return err
}

// withOrdinal replaces the ordinal of a line and leaves every other byte.
func withOrdinal(raw []byte, ordinal int64) []byte {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return raw
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return raw
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return raw
		}
		if key == "ordinal" {
			end := dec.InputOffset()
			out := append([]byte{}, raw[:end-int64(len(value))]...)
			return append(strconv.AppendInt(out, ordinal, 10), raw[end:]...)
		}
	}
	return raw
}
