package settings

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/stet-dev/stet/foreign"
)

// blockMark stands before a table that is ours.
const blockMark = "# Written by stet connect, removed by stet disconnect."

// blockText is a block as it stands in a file.
func blockText(b foreign.Block) string {
	return blockMark + "\n[" + b.Table + "]\n" + strings.Join(b.Lines, "\n") + "\n"
}

// addBlock adds a table at the end of a TOML file, or replaces one of an earlier
// release. A table with that name that is not ours stays. The line end before the
// mark is ours, so that a file that did not end in one is as before when the block is
// removed.
func addBlock(src []byte, b foreign.Block) ([]byte, error) {
	there, err := hasTable(src, b.Table)
	if err != nil {
		return nil, err
	}
	from, to, ours := findBlock(src, b)
	text := blockText(b)
	switch {
	case ours:
		return splice(src, from, to, text), nil
	case there:
		return src, nil
	case len(src) > 0:
		text = "\n" + text
	}
	if outer, _, _ := strings.Cut(b.Table, "."); inline(src, outer) {
		return nil, fmt.Errorf("%w: %s is written in braces, to which no table can be added", foreign.ErrSettings, outer)
	}
	after := splice(src, len(src), len(src), text)
	_, err = hasTable(after, b.Table)
	return after, err
}

// inline reports whether a table at the top of a file is written in braces. Parsers differ
// in whether they accept another part of it.
func inline(src []byte, table string) bool {
	for line := range bytes.Lines(src) {
		line = bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("[")) {
			return false
		}
		key, value, ok := bytes.Cut(line, []byte("="))
		if ok && strings.Trim(string(key), " \t\"'") == table && bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) {
			return true
		}
	}
	return false
}

// removeBlock removes our table, and the tables inside it, which the agent made.
func removeBlock(src []byte, b foreign.Block) ([]byte, error) {
	from, to, ours := findBlock(src, b)
	if !ours {
		return src, nil
	}
	if _, err := hasTable(src, b.Table); err != nil {
		return nil, err
	}
	if from > 0 && src[from-1] == '\n' {
		from--
	}
	src = splice(src, from, to, "")
	for {
		from := lineStart(src, "["+b.Table+".")
		if from < 0 {
			return src, nil
		}
		to := len(src)
		if next := lineStart(src[from+1:], "["); next >= 0 {
			to = from + 1 + next
		}
		src = splice(src, from, to, "")
	}
}

// findBlock returns the place of our table: the mark, the head, and the lines with
// our keys after it. What others added stays.
func findBlock(src []byte, b foreign.Block) (from, to int, ok bool) {
	head := blockMark + "\n[" + b.Table + "]\n"
	if from = lineStart(src, head); from < 0 {
		return 0, 0, false
	}
	to = from + len(head)
	for to < len(src) {
		line, _, found := bytes.Cut(src[to:], []byte("\n"))
		key, _, isKey := bytes.Cut(line, []byte("="))
		if !isKey || !hasKey(b, strings.TrimSpace(string(key))) {
			break
		}
		to += len(line)
		if found {
			to++
		}
	}
	return from, to, true
}

func hasKey(b foreign.Block, key string) bool {
	for _, line := range b.Lines {
		if name, _, _ := strings.Cut(line, "="); strings.TrimSpace(name) == key {
			return true
		}
	}
	return false
}

// lineStart returns where a text stands at the start of a line, or -1.
func lineStart(src []byte, text string) int {
	if bytes.HasPrefix(src, []byte(text)) {
		return 0
	}
	if i := bytes.Index(src, []byte("\n"+text)); i >= 0 {
		return i + 1
	}
	return -1
}

// hasTable reports whether a TOML file has a table.
func hasTable(src []byte, table string) (bool, error) {
	var all map[string]any
	if err := toml.Unmarshal(src, &all); err != nil {
		return false, fmt.Errorf("%w: %w", foreign.ErrSettings, err)
	}
	at := any(all)
	for key := range strings.SplitSeq(table, ".") {
		inside, ok := at.(map[string]any)
		if !ok {
			return false, fmt.Errorf("%w: %s is not a table", foreign.ErrSettings, table)
		}
		if at, ok = inside[key]; !ok {
			return false, nil
		}
	}
	return true, nil
}
