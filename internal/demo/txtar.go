package demo

import (
	"iter"
	"strings"
)

// file is a file of an archive.
type file struct{ name, text string }

// split reads a txtar archive: what comes before the first file, and the files. A file
// begins after a line "-- NAME --". The format is small enough to be read here; the
// module that has it is otherwise needed by tests only.
func split(text string) (head string, files []file) {
	var b strings.Builder
	end := func() {
		if len(files) == 0 {
			head = b.String()
		} else {
			files[len(files)-1].text = b.String()
		}
		b.Reset()
	}
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		if name, last := strings.CutSuffix(name, " --"); ok && last {
			end()
			files = append(files, file{name: strings.TrimSpace(name)})
			continue
		}
		b.WriteString(line)
	}
	end()
	return head, files
}

// fields reads lines of the form "field: value".
func fields(text string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(text) {
			field, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if field != "" && !yield(field, value) {
				return
			}
		}
	}
}
