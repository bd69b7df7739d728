package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/osfile"
)

// append adds a line with the hash of the one before. It opens the file each time, so
// that it may be moved while the server runs, and locks it against other processes.
func (a *Audit) append(r Record) (err error) {
	lock := flock.New(a.path+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	f, err := os.OpenFile(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	full, err := a.appendTo(f, r)
	if err = errors.Join(err, f.Close()); err != nil || !full {
		return err
	}
	return a.rotate() // not before it is closed: Windows renames no open file
}

// appendTo adds a line to the open file, and reports whether the file is then full.
func (a *Audit) appendTo(f *os.File, r Record) (full bool, err error) {
	last, torn, err := lastLine(f)
	if err != nil {
		return false, err
	}
	head := a.head()
	r.Seq = head.Seq + 1
	if last != nil {
		r.Prev = hashLine(last)
		var before Record
		if json.Unmarshal(last, &before) == nil && before.Seq >= r.Seq {
			r.Seq = before.Seq + 1 // a crash prevented the write of the head
		}
	} else {
		r.Prev = head.Hash // of the rotated file
	}
	line, err := json.Marshal(r)
	if err != nil {
		return false, err
	}
	text := append(slices.Clip(line), '\n')
	if torn { // a cut-off line stays one line
		text = append([]byte{'\n'}, text...)
	}
	if _, err := f.Write(text); err != nil {
		return false, err
	}
	if err := f.Sync(); err != nil {
		return false, err
	}
	if err := a.setHead(auditHead{Seq: r.Seq, Hash: hashLine(line)}); err != nil {
		return false, err
	}
	end, err := f.Seek(0, io.SeekEnd)
	return err == nil && end >= a.opts.MaxFile, err
}

func hashLine(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// lastLine returns the last line of a file, nil if it is empty, and whether a crash
// cut it off.
func lastLine(f *os.File) (line []byte, torn bool, err error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || end == 0 {
		return nil, false, err
	}
	var tail []byte
	for at := end; at > 0; {
		n := min(at, 8<<10)
		at -= n
		part := make([]byte, n)
		if _, err := f.ReadAt(part, at); err != nil {
			return nil, false, err
		}
		tail = append(part, tail...)
		if i := bytes.LastIndexByte(bytes.TrimSuffix(tail, []byte{'\n'}), '\n'); i >= 0 {
			tail = tail[i+1:]
			break
		}
	}
	whole := bytes.HasSuffix(tail, []byte{'\n'})
	return bytes.TrimSuffix(tail, []byte{'\n'}), !whole, nil
}

// auditHead records the last line of the log, so that lines removed from its end are
// detected. It is written after the line and not synced: it may be older than the
// log, never newer.
type auditHead struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

func (a *Audit) headPath() string { return a.path + ".head" }

func (a *Audit) head() (h auditHead) {
	data, err := os.ReadFile(a.headPath())
	if err != nil || json.Unmarshal(data, &h) != nil {
		return auditHead{}
	}
	return h
}

func (a *Audit) setHead(h auditHead) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	tmp := a.headPath() + ".new"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return osfile.Rename(tmp, a.headPath())
}

// rotate renames the file to the next number and removes the oldest ones. The caller
// holds the lock.
func (a *Audit) rotate() error {
	aside, err := a.aside()
	if err != nil {
		return err
	}
	next := 1
	if len(aside) > 0 {
		next = aside[len(aside)-1].number + 1
	}
	if err := osfile.Rename(a.path, fmt.Sprintf("%s.%d", a.path, next)); err != nil {
		return err
	}
	for _, old := range aside[:max(0, len(aside)+1-a.opts.Files)] {
		if err := os.Remove(old.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return osfile.SyncDir(filepath.Dir(a.path))
}

// numbered is a rotated file.
type numbered struct {
	path   string
	number int
}

// aside lists the rotated files, oldest first.
func (a *Audit) aside() ([]numbered, error) {
	entries, err := os.ReadDir(filepath.Dir(a.path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []numbered
	for _, e := range entries {
		suffix, ok := strings.CutPrefix(e.Name(), filepath.Base(a.path)+".")
		if n, err := strconv.Atoi(suffix); ok && err == nil && n > 0 {
			out = append(out, numbered{filepath.Join(filepath.Dir(a.path), e.Name()), n})
		}
	}
	slices.SortFunc(out, func(x, y numbered) int { return x.number - y.number })
	return out, nil
}

// eachLine calls fn for every whole line of all files, oldest first, with its file
// and number.
func (a *Audit) eachLine(fn func(file string, number int, line []byte) error) error {
	aside, err := a.aside()
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	for _, file := range append(aside, numbered{path: a.path}) {
		f, err := os.Open(file.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		number := 0
		err = eachLine(f, func(line []byte) error {
			number++
			return fn(file.path, number, bytes.TrimSuffix(line, []byte{'\n'}))
		})
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// ErrAuditChanged says that lines of the audit log were changed or removed.
var ErrAuditChanged = fault.New(fault.Damaged, "the audit log was changed")

// Verify reads the whole log and returns how many lines it has. If a line does not
// follow the one before, or the end is missing, it returns an error that wraps
// ErrAuditChanged and names file and line. It cannot check the first line, since
// rotation removes its predecessor, nor detect that an attacker with write access has
// written a whole new log.
func (a *Audit) Verify() (lines int, err error) {
	head, met := a.head(), false
	var prev string
	err = a.eachLine(func(file string, number int, line []byte) error {
		var r Record
		ok := json.Unmarshal(line, &r) == nil && r.Seq > 0
		if ok && prev != "" && r.Prev != prev {
			return fmt.Errorf("%w: %s, line %d does not follow the line before it", ErrAuditChanged, file, number)
		}
		prev = hashLine(line)
		met = met || ok && r.Seq == head.Seq && prev == head.Hash
		lines++
		return nil
	})
	if err == nil && head.Seq > 0 && !met {
		err = fmt.Errorf("%w: line %d, the last one written, is missing", ErrAuditChanged, head.Seq)
	}
	return lines, err
}
