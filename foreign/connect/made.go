package connect

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stet-dev/stet/foreign"
)

// made is the file that lists the directories that connecting made, one JSON string
// per line: the path, or base64 of a path that is not UTF-8. An agent counts as found if its directory exists, so disconnecting
// removes them again. "" keeps no list.
type made string

func madeIn(dir string) made {
	if dir == "" {
		return ""
	}
	return made(filepath.Join(dir, "made.jsonl"))
}

// note lists the directories that changes are about to make. It comes first: a listed
// directory that was not made does no harm.
func (m made) note(changes []foreign.Change) error {
	var lines []byte
	for _, c := range changes {
		for dir := filepath.Dir(c.Path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
				break
			}
			line, err := lineOf(dir)
			if err != nil {
				return err
			}
			lines = append(append(lines, line...), '\n')
		}
	}
	if len(lines) == 0 || m == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(string(m)), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(string(m), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(lines)
	return errors.Join(err, f.Close())
}

func lineOf(dir string) ([]byte, error) {
	if !utf8.ValidString(dir) {
		return json.Marshal([]byte(dir))
	}
	return json.Marshal(dir)
}

func dirOf(line string) (dir string, ok bool) {
	if json.Unmarshal([]byte(line), &dir) != nil {
		return "", false
	}
	if filepath.IsAbs(dir) {
		return dir, true
	}
	data, err := base64.StdEncoding.DecodeString(dir)
	return string(data), err == nil
}

// remove removes the listed directories of changes that are empty, the deepest first, and
// takes them off the list.
func (m made) remove(changes []foreign.Change) error {
	if m == "" {
		return nil
	}
	data, err := os.ReadFile(string(m))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var dirs []string
	var rest strings.Builder
	for line := range strings.Lines(string(data)) {
		dir, ok := dirOf(line)
		if !ok {
			continue // torn
		}
		if slices.ContainsFunc(changes, func(c foreign.Change) bool { return strings.HasPrefix(c.Path, dir+string(filepath.Separator)) }) {
			dirs = append(dirs, dir)
		} else {
			rest.WriteString(line)
		}
	}
	slices.Sort(dirs)
	for _, dir := range slices.Backward(dirs) {
		_ = os.Remove(dir) // fails if something is in it
	}
	if rest.Len() == 0 {
		return os.Remove(string(m))
	}
	return os.WriteFile(string(m), []byte(rest.String()), 0o600)
}
