package gemini

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/newfile"
)

// Cut copies the log up to the end of a turn under a new session id. The log is a
// list of changes, so a prefix of it is the conversation as it was at that moment.
func (*Adapter) Cut(ctx context.Context, h foreign.Host, s foreign.Session, after foreign.Turn) (foreign.Continuation, error) {
	if s.Parent != "" {
		return foreign.Continuation{}, fmt.Errorf("%w: gemini cannot resume a subagent", foreign.ErrCannotCut)
	}
	end, err := endOf(ctx, s.Path, after.ID)
	if err != nil {
		return foreign.Continuation{}, err
	}
	src, err := os.Open(s.Path)
	if err != nil {
		return foreign.Continuation{}, fmt.Errorf("%w: %w", foreign.ErrCannotCut, err)
	}
	defer src.Close()
	id := newID()
	file := fmt.Sprintf("session-%s-%s.jsonl", time.Now().UTC().Format("2006-01-02T15-04"), id[:8])
	path := filepath.Join(filepath.Dir(s.Path), file)
	err = newfile.Create(path, func(w io.Writer) error {
		return rename(w, io.NewSectionReader(src, 0, end), s.ID, id)
	})
	if err != nil {
		return foreign.Continuation{}, err
	}
	program := "gemini"
	if found := h.Program("gemini"); found != "" {
		program = found
	}
	return foreign.Continuation{
		Session: id, Command: []string{program, "--resume", id}, Dir: s.Workspace, Created: []string{path},
	}, nil
}

// endOf returns where a turn ends in the file.
func endOf(ctx context.Context, path, id string) (int64, error) {
	f, err := newFold("")
	if err != nil {
		return 0, err
	}
	var failed error
	f.read(ctx, path, 0, func(err error) bool {
		if !foreign.Unreadable(err) || errors.Is(err, os.ErrNotExist) {
			failed = fmt.Errorf("%w: %w", foreign.ErrCannotCut, err)
		}
		return failed == nil
	})
	if failed != nil {
		return 0, failed
	}
	for i, t := range f.turns {
		if t.id != id {
			continue
		}
		end := f.endOf(i)
		if end <= t.begin {
			return 0, fmt.Errorf("%w: the record has turn %s only together with later ones", foreign.ErrCannotCut, id)
		}
		return end, nil
	}
	return 0, fmt.Errorf("%w: turn %q is not in the session", foreign.ErrCannotCut, id)
}

// rename copies a log under another session id. Lines that contain the id are short;
// a line that does not fit the buffer is copied unchanged.
func rename(w io.Writer, log io.Reader, from, to string) error {
	in := bufio.NewReaderSize(log, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			if _, err := w.Write(line); err != nil {
				return err
			}
			if line, err = in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
		}
		if err != nil && err != io.EOF {
			return err
		}
		if _, failed := w.Write(renamed(line, from, to)); failed != nil {
			return failed
		}
		if err == io.EOF {
			return end(w, line)
		}
	}
}

// end makes sure that the last line is whole: the CLI appends to it.
func end(w io.Writer, last []byte) error {
	if len(last) == 0 {
		return nil
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// renamed replaces the session id of a header or of a "$set".
func renamed(line []byte, from, to string) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &fields) != nil {
		return line
	}
	changed := exchange(fields, from, to)
	var set map[string]json.RawMessage
	if json.Unmarshal(fields["$set"], &set) == nil && exchange(set, from, to) {
		fields["$set"], _ = json.Marshal(set)
		changed = true
	}
	if !changed {
		return line
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return line
	}
	return append(out, '\n')
}

func exchange(fields map[string]json.RawMessage, from, to string) bool {
	var id string
	if json.Unmarshal(fields["sessionId"], &id) != nil || id != from {
		return false
	}
	fields["sessionId"], _ = json.Marshal(to)
	return true
}

// newID returns a random UUID.
func newID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
