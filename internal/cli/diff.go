package cli

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/workspace"
)

func (a *app) diffCommand() *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use:     "diff [A [B]] [-- PATH…]",
		Short:   "Show what changed between two points",
		GroupID: groupLook,
		Long: `Show what changed from A to B as a unified diff. A defaults to the last checkpoint,
B to the workspace now. With PATHs, only these paths are shown.

A and B are references:
  @                 the workspace now
  01jcx4, c7        a checkpoint: its id, a unique prefix of the id, or its number
  i7                an imported checkpoint of a conversation (-c); its source id works, too
  MESSAGE           the state after a message; before:MESSAGE the one before it
  turn:5            after turn 5; before:turn:6 before turn 6
  pin:NAME          a pinned checkpoint
  @{10m}, @{14:20}  the state ten minutes ago, or at 14:20

An imported checkpoint has only some of the files, and only these are compared.

With --stat, and always on a terminal, more than 100 files are summed up by directory;
--full shows all.`,
		Example:           "  stet diff\n  stet diff c5 --stat\n  stet diff turn:4 turn:6 -- checkout/",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeRefs(2),
		RunE: a.paged(func(cmd *cobra.Command, args []string) error {
			refs, paths, err := splitArgs(cmd, args, 2)
			if err != nil {
				return err
			}
			return a.withView(cmd.Context(), func(p *place) error {
				return a.diff(cmd.Context(), p, refs, paths, stat)
			})
		}),
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "show only the names of changed files and line counts")
	a.noPagerFlag(cmd)
	a.fullFlag(cmd)
	return cmd
}

// splitArgs separates references from the paths after "--".
func splitArgs(cmd *cobra.Command, args []string, most int) (refs, paths []string, err error) {
	refs = args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		refs, paths = args[:dash], args[dash:]
	}
	if len(refs) > most {
		return nil, nil, usage(fmt.Errorf("%d references, at most %d are allowed; paths follow --; see '%s --help'", len(refs), most, cmd.CommandPath()))
	}
	return refs, paths, nil
}

func (a *app) diff(ctx context.Context, p *place, refs, paths []string, stat bool) error {
	conv, err := a.known(ctx, p)
	if err != nil {
		return err
	}
	within, err := p.inside(paths)
	if err != nil {
		return err
	}
	if len(refs) == 0 {
		last, err := p.latest(ctx)
		if err != nil {
			return err
		}
		if refused := p.space.Refused(); last == nil && refused != nil {
			return refused
		}
		if last == nil {
			return coded(ExitNotFound, "no checkpoint to compare with; 'stet checkpoint' creates one")
		}
		refs = []string{last.ID}
	}
	if len(refs) == 1 {
		refs = append(refs, "@")
	}
	return p.withLook(ctx, func(l look) error {
		from, err := l.side(ctx, refs[0], conv)
		if err != nil {
			return err
		}
		to, err := l.side(ctx, refs[1], conv)
		if err != nil {
			return err
		}
		changes, err := workspace.Diff(ctx, l.blobs, from.tree, to.tree)
		if err != nil {
			return err
		}
		if changes, err = p.service.Comparable(ctx, changes, from.rec, to.rec); err != nil {
			return err
		}
		return a.printDiff(ctx, l.blobs, from, to, linediff.Files(changes, within), stat)
	})
}

type diffJSON struct {
	Schema string         `json:"schema"`
	From   string         `json:"from"`
	To     string         `json:"to"`
	Files  []fileDiffJSON `json:"files"`
}

type fileDiffJSON struct {
	Path   string `json:"path"`
	Bytes  []byte `json:"path_bytes,omitempty"`
	Op     string `json:"op"`
	Kind   string `json:"kind"`
	Add    int    `json:"add"`
	Del    int    `json:"del"`
	Binary bool   `json:"binary,omitempty"`
	// TooLarge means that the lines were not compared.
	TooLarge bool `json:"too_large,omitempty"`
	// Coarse means that some lines of both versions are shown as removed and added.
	Coarse bool   `json:"coarse,omitempty"`
	Mode   string `json:"mode,omitempty"`
	Diff   string `json:"diff,omitempty"`

	became string // what is there now, if that is of another kind, such as "a link"
}

func (a *app) printDiff(ctx context.Context, store blob.Store, from, to side, changes []workspace.Change, stat bool) error {
	value := diffJSON{Schema: "stet.diff.v1", From: sideID(from), To: sideID(to), Files: []fileDiffJSON{}}
	stat = stat || isTerminal(a.out) && !a.json && a.folds(len(changes))
	for _, c := range changes {
		file, err := fileDiff(ctx, store, c)
		if err != nil {
			return err
		}
		if a.json {
			if stat {
				file.Diff = ""
			}
			value.Files = append(value.Files, file)
			continue
		}
		if stat {
			value.Files = append(value.Files, file)
			continue
		}
		if _, err := fmt.Fprint(a.out, a.fileText(file)); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(value)
	}
	if stat {
		_, err := fmt.Fprint(a.out, a.statText(value.Files))
		return err
	}
	return nil
}

func sideID(s side) string {
	if s.rec == nil {
		return "@"
	}
	return s.rec.ID
}

// fileDiff compares one path.
func fileDiff(ctx context.Context, store blob.Store, c workspace.Change) (fileDiffJSON, error) {
	f, err := linediff.Compare(ctx, store, c)
	if err != nil {
		return fileDiffJSON{}, err
	}
	became := ""
	if f.Became() {
		became = kindWords[f.Kind()]
	}
	return fileDiffJSON{
		became: became, Path: c.Path, Bytes: workspace.PathBytes(c.Path), Op: c.Op(), Kind: f.Kind().String(), Mode: f.ModeChange(),
		Add: f.Added, Del: f.Removed, Binary: f.Binary, TooLarge: f.TooLarge, Coarse: f.Coarse, Diff: f.Unified(),
	}, nil
}

var kindWords = map[workspace.Kind]string{workspace.File: "a file", workspace.Symlink: "a link", workspace.Dir: "a directory"}

// fileText formats a diff for patch(1).
func (a *app) fileText(f fileDiffJSON) string {
	p := a.paint()
	var text strings.Builder
	from, to := headerName("a/"+f.Path), headerName("b/"+f.Path)
	switch f.Op {
	case "add":
		from = "/dev/null"
	case "remove":
		to = "/dev/null"
	}
	if f.Mode != "" {
		fmt.Fprintf(&text, "%s\n", p.bold("mode "+f.Mode+"  "+printable(f.Path)))
	}
	if f.became != "" {
		fmt.Fprintf(&text, "%s\n", p.bold("became "+f.became+"  "+printable(f.Path)))
	}
	if f.Binary {
		fmt.Fprintf(&text, "%s\n", p.bold("binary file "+printable(f.Path)+" differs"))
		return text.String()
	}
	if f.TooLarge {
		fmt.Fprintf(&text, "%s\n", p.bold("file "+printable(f.Path)+" differs and is too large to compare"))
		return text.String()
	}
	if f.Coarse {
		fmt.Fprintf(&text, "%s\n", p.bold("coarse  "+printable(f.Path)+": the versions are long and very different, so common lines may be shown as removed and added"))
	}
	if f.Diff == "" {
		if f.Mode == "" && f.became == "" {
			fmt.Fprintf(&text, "%s\n", p.bold(f.Op+" empty "+f.Kind+" "+printable(f.Path)))
		}
		return text.String()
	}
	fmt.Fprintf(&text, "%s\n%s\n", p.bold("--- "+from), p.bold("+++ "+to))
	for line := range strings.Lines(f.Diff) {
		body := strings.TrimSuffix(line, "\n")
		if isTerminal(a.out) {
			body = printable(strings.ReplaceAll(body, "\t", "    "))
		}
		switch line[0] {
		case '+':
			body = p.green(body)
		case '-':
			body = p.red(body)
		case '@':
			body = p.cyan(body)
		}
		text.WriteString(body + "\n")
	}
	return text.String()
}

// headerName formats a name for patch(1) and git: quoted if it has characters that
// would end it, and followed by a tab if it has a space.
func headerName(name string) string {
	special := func(r rune) bool { return r < 0x20 || r == 0x7f || r == '"' || r == '\\' }
	switch {
	case !utf8.ValidString(name) || strings.ContainsFunc(name, special) || name != printable(name):
		return quoted(name)
	case strings.Contains(name, " "):
		return name + "\t"
	}
	return name
}

// quoted formats a name as a C string, with octal escapes for all but plain letters.
func quoted(name string) string {
	var text strings.Builder
	text.WriteByte('"')
	for _, b := range []byte(name) {
		switch {
		case b == '"' || b == '\\':
			text.WriteByte('\\')
			text.WriteByte(b)
		case b < 0x20 || b >= 0x7f:
			fmt.Fprintf(&text, `\%03o`, b)
		default:
			text.WriteByte(b)
		}
	}
	text.WriteByte('"')
	return text.String()
}

// statText formats one line per file and a total.
func (a *app) statText(list []fileDiffJSON) string {
	if a.folds(len(list)) {
		return a.foldedText(fileStats(list), "", 6, a.out)
	}
	p := a.paint()
	width, add, del := 0, 0, 0
	for _, f := range list {
		width = max(width, columns(printable(f.Path)))
		add, del = add+f.Add, del+f.Del
	}
	width = min(width, 60)
	if isTerminal(a.out) {
		width = min(width, max(12, a.width()-25))
	}
	var text strings.Builder
	for _, f := range list {
		note := fmt.Sprintf("%s %s", p.green(padLeft(fmt.Sprintf("+%d", f.Add), 6)), p.red(padLeft(fmt.Sprintf("-%d", f.Del), 6)))
		if f.Binary {
			note = "       binary"
		}
		if f.TooLarge {
			note = "    too large"
		}
		if f.Coarse {
			note += "  coarse"
		}
		fmt.Fprintf(&text, "%s  %s  %s", pad(f.Op, 6), pad(a.pathOf(f.Path, width), width), note)
		if f.Mode != "" {
			text.WriteString("  mode " + f.Mode)
		}
		if f.became != "" {
			text.WriteString("  became " + f.became)
		}
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "%s  +%d -%d\n", plural(int64(len(list)), "file"), add, del)
	return text.String()
}

// pathOf is a path for a table on a terminal, where it must not wrap.
func (a *app) pathOf(path string, width int) string {
	if isTerminal(a.out) {
		return cutFront(printable(path), width)
	}
	return printable(path)
}

func fileStats(list []fileDiffJSON) []linediff.Stat {
	stats := make([]linediff.Stat, len(list))
	for i, f := range list {
		stats[i] = linediff.Stat{Path: f.Path, Op: f.Op, Added: uint64(f.Add), Removed: uint64(f.Del)}
	}
	return stats
}

// errNoRef is the error of commands that need a reference.
var errNoRef = fault.New(fault.Invalid, "no reference given")
