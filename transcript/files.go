package transcript

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/osfile"
)

// FileOf returns the file, below dir, of a conversation's transcript:
// <id>/<id>.jsonl. Those of its subagents are <id>/subagents/<subagent>.jsonl.
func FileOf(dir, id string) string {
	name := fileName(id)
	return filepath.Join(dir, name, name+".jsonl")
}

func subagentFile(dir, id, subagent string) string {
	return filepath.Join(dir, fileName(id), "subagents", fileName(subagent)+".jsonl")
}

// maxName is how long an id may be in a file name.
const maxName = 150

// fileName makes an id safe as a file name. Ids of letters, digits, dots, dashes and
// underscores stay unchanged; other bytes are written %XX. Names that a system may
// reject get the start of their hash.
func fileName(id string) string {
	var b strings.Builder
	for i := range len(id) {
		c := id[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	name := b.String()
	if name == "" || len(name) > maxName || strings.HasSuffix(name, ".") || reserved[strings.ToLower(strings.SplitN(name, ".", 2)[0])] {
		return name[:min(len(name), maxName)] + "%-" + blob.Sum([]byte(id)).String()[:16]
	}
	return name
}

// reserved are names that mean devices on some systems.
var reserved = func() map[string]bool {
	names := map[string]bool{"con": true, "prn": true, "aux": true, "nul": true}
	for n := '0'; n <= '9'; n++ {
		names["com"+string(n)], names["lpt"+string(n)] = true, true
	}
	return names
}()

// WriteFiles writes the transcript of a conversation and of its subagents as JSON
// lines below dir: see FileOf. Each file is replaced as a whole or left unchanged.
func WriteFiles(ctx context.Context, dir string, t *Transcript, opts *Options) error {
	if t.Info.ID == "" {
		return fmt.Errorf("write transcript: %w: it has no id", conversation.ErrInvalid)
	}
	err := replaceFile(FileOf(dir, t.Info.ID), func(w io.Writer) error { return Write(ctx, w, t, JSONL, opts) })
	if err != nil {
		return err
	}
	if _, err := writeSubagents(ctx, dir, t, opts, nil); err != nil {
		return err
	}
	return writeInline(ctx, dir, t, opts, nil)
}

// writeInline writes the files of subagents that exist only as steps in the calls
// that started them: those in ids, or all if ids is nil.
func writeInline(ctx context.Context, dir string, t *Transcript, opts *Options, ids map[string]bool) error {
	all := opts.or()
	all.TurnFrom, all.TurnTo, all.WithoutSubagents = 0, 0, true
	texts := make(map[string]*bytes.Buffer)
	writers := make(map[string]*lineWriter)
	for m, err := range t.Messages(ctx, &all) {
		if err != nil {
			return err
		}
		if m.Subagent == "" || t.has(m.Subagent) || ids != nil && !ids[m.Subagent] {
			continue
		}
		l := writers[m.Subagent]
		if l == nil {
			texts[m.Subagent] = new(bytes.Buffer)
			l = &lineWriter{w: texts[m.Subagent]}
			writers[m.Subagent] = l
		}
		if err := l.write(m); err != nil {
			return err
		}
	}
	for id, l := range writers {
		if err := l.end(); err != nil {
			return err
		}
		err := replaceFile(subagentFile(dir, t.Info.ID, id), func(w io.Writer) error {
			_, err := w.Write(texts[id].Bytes())
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeSubagents writes the files of subagents whose digest differs from the one in
// done, and returns the digests of all that have a state.
func writeSubagents(ctx context.Context, dir string, t *Transcript, opts *Options, done map[string]blob.ID) (map[string]blob.ID, error) {
	w := &subagentWriter{dir: dir, id: t.Info.ID, opts: opts.or(), done: done, now: make(map[string]blob.ID)}
	w.opts.TurnFrom, w.opts.TurnTo = 0, 0
	return w.now, w.all(ctx, t)
}

type subagentWriter struct {
	dir, id   string
	opts      Options
	done, now map[string]blob.ID
}

func (w *subagentWriter) all(ctx context.Context, t *Transcript) error {
	for _, name := range t.Subagents() {
		sub, err := t.Subagent(ctx, name)
		if err != nil {
			return err
		}
		digest, err := sub.Digest()
		if err != nil {
			return err
		}
		if w.now[name] == digest {
			continue // also avoids walking shared states more than once
		}
		w.now[name] = digest
		if w.done[name] != digest {
			err = replaceFile(subagentFile(w.dir, w.id, name), func(f io.Writer) error { return Write(ctx, f, sub, JSONL, &w.opts) })
			if err != nil {
				return err
			}
		}
		if err := w.all(ctx, sub); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a temporary file and renames it, so that readers and crashes see
// the old or the new one.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	if err := sweepTemp(filepath.Dir(path)); err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(f.Name())))
		}
	}()
	b := bufio.NewWriterSize(f, 64<<10)
	err = write(b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = osfile.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write transcript %s: %w", filepath.Base(path), err)
	}
	return nil
}

const tempPrefix = ".transcript-"

// staleTemp is the age from which a temporary file counts as left by a killed
// process.
const staleTemp = time.Hour

func sweepTemp(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		name := filepath.Join(dir, e.Name())
		info, err := os.Lstat(name)
		if err == nil && time.Since(info.ModTime()) > staleTemp {
			err = os.Remove(name)
		}
		if ignoreMissing(err) != nil {
			return err
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
