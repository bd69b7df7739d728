package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/linediff"
)

// Lists of more than foldOver files are summed up by directory, in at most foldTo lines.
const (
	foldOver = 100
	foldTo   = 30
)

// fullFlag adds the flag that lists every file.
func (a *app) fullFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.full, "full", false, fmt.Sprintf("list every file, even if there are more than %d", foldOver))
}

// folds reports whether a list of files is summed up by directory.
func (a *app) folds(files int) bool { return files > foldOver && !a.full }

// foldedText formats a list of files by directory, with a total. The words for what
// happened are padded to a width, and lines are cut where the stream is a terminal.
func (a *app) foldedText(files []linediff.Stat, indent string, verbs int, to any) string {
	p := a.paint()
	rows := linediff.Fold(files, foldTo)
	texts := make([][]string, len(rows))
	var added, removed uint64
	for i, row := range rows {
		count := ""
		if row.Files > 1 {
			count = plural(int64(row.Files), "file")
		}
		verb := row.Op
		if verb == "" {
			verb = "change"
		}
		texts[i] = []string{verb, printable(row.Path), count, countsText(row.Added, row.Removed), printable(row.Note)}
		added, removed = added+row.Added, removed+row.Removed
	}
	widths := columnWidths(texts, 4)
	widths[0] = max(widths[0], verbs)
	width, _ := terminalSize(to) // 0 if it is not a terminal
	if width > 0 {
		widths[1] = min(widths[1], max(12, width-columns(indent)-widths[0]-widths[2]-widths[3]-8))
	}
	var text strings.Builder
	for _, row := range texts {
		line := indent + pad(row[0], widths[0]) + "  " + pad(cutFront(row[1], widths[1]), widths[1]) + "  " + padLeft(row[2], widths[2]) + "  " + pad(row[3], widths[3])
		note := row[4]
		if width > 0 {
			note = cut(note, max(0, width-columns(line)-2))
		}
		if note != "" {
			line += "  " + p.dim(note)
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	fmt.Fprintf(&text, "%s%s  %s  by directory; --full lists all\n", indent, plural(int64(len(files)), "file"), countsText(added, removed))
	return text.String()
}

func countsText(added, removed uint64) string { return fmt.Sprintf("+%d -%d", added, removed) }
