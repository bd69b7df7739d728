package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/stet-dev/stet/blob"
)

// maxFiles limits how many written files are remembered. A forgotten file is
// rewritten as a whole the next time.
const maxFiles = 1000

// file describes the transcript file of a conversation.
type file struct {
	turns     []blob.ID          // finished turns in the file
	ends      []int64            // the size up to the end of each
	size      int64              // including an unfinished turn
	subagents map[string]blob.ID // digests of the written ones
	inline    map[string]bool    // subagents in the turns just written
}

func (b *Background) write(ctx context.Context, id string, root blob.ID) error {
	t, err := b.reader.At(ctx, root)
	if err != nil {
		return err
	}
	t.Info.ID = id
	old := b.files[id]
	if old == nil {
		old = &file{}
	}
	now, err := b.writeTurns(ctx, t, old)
	if err != nil {
		return err
	}
	if now.subagents, err = writeSubagents(ctx, b.dir, t, &b.opts.Options, old.subagents); err != nil {
		return err
	}
	if len(now.inline) > 0 {
		if err := writeInline(ctx, b.dir, t, &b.opts.Options, now.inline); err != nil {
			return err
		}
	}
	if len(b.files) >= maxFiles {
		clear(b.files)
	}
	b.files[id] = now
	return nil
}

// writeTurns writes the turns that the file does not hold yet. It appends them if
// nothing else has changed; otherwise it replaces the file and copies its unchanged
// beginning.
func (b *Background) writeTurns(ctx context.Context, t *Transcript, old *file) (*file, error) {
	same := 0
	for same < len(old.turns) && same < len(t.ids) && old.turns[same] == t.ids[same] {
		same++
	}
	path := FileOf(b.dir, t.Info.ID)
	size, err := fileSize(path)
	if err != nil {
		return nil, err
	}
	if size != old.size {
		same = 0 // another process wrote the file
	}
	now := &file{ends: slices.Clone(old.ends[:same]), inline: make(map[string]bool)}
	var keep int64
	if same > 0 {
		keep = old.ends[same-1]
	}
	if same > 0 && size == keep {
		var tail bytes.Buffer
		if err := b.tail(ctx, t, now, keep, &tail); err != nil {
			return nil, err
		}
		return now, appendFile(path, tail.Bytes())
	}
	return now, replaceFile(path, func(w io.Writer) error {
		if err := copyHead(w, path, keep); err != nil {
			return err
		}
		return b.tail(ctx, t, now, keep, w)
	})
}

// tail writes the turns whose ends are not known yet, and records the ends.
func (b *Background) tail(ctx context.Context, t *Transcript, now *file, at int64, w io.Writer) error {
	counted := &counter{w: w, n: at}
	l := &lineWriter{w: counted}
	opts := b.opts.Options
	opts.WithoutSubagents, opts.WithoutSummaries, opts.TurnFrom = true, true, len(now.ends)
	for m, err := range t.Messages(ctx, &opts) {
		if err != nil {
			return err
		}
		if m.Subagent != "" {
			now.inline[m.Subagent] = true
			continue
		}
		for len(now.ends) < m.Turn-1 {
			if err := l.endTurn(); err != nil {
				return err
			}
			now.ends = append(now.ends, counted.n)
		}
		if err := l.write(m); err != nil {
			return err
		}
	}
	over := len(t.ids) // turns
	if l.live {
		over-- // at least the last one is unfinished
		if l.turn > 0 {
			over = l.turn - 1 // later turns may have no messages yet
		}
	}
	if err := l.end(); err != nil {
		return err
	}
	for len(now.ends) < over {
		now.ends = append(now.ends, counted.n)
	}
	now.ends = now.ends[:over]
	now.turns, now.size = t.ids[:len(now.ends)], counted.n
	return nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func copyHead(w io.Writer, path string, n int64) error {
	if n == 0 {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.CopyN(w, f, n); err != nil {
		return fmt.Errorf("copy the beginning: %w", err)
	}
	return nil
}

// appendFile adds whole lines in one write. A crash can leave a part of them; the
// next writer has no record of the file and replaces it.
func appendFile(path string, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
