package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/blame"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
)

type blameFlags struct {
	lines, format string
	why           bool
}

// agentTrace is the name of the format that other tools read.
const agentTrace = "agent-trace"

func (a *app) blameCommand() *cobra.Command {
	var flags blameFlags
	cmd := &cobra.Command{
		Use:     "blame FILE [REF]",
		Short:   "Show which turn and prompt each line of a file came from",
		GroupID: groupLook,
		Long: `Show where each line of a file came from: the first checkpoint that has it, its author
and turn, the prompt, and the tool call. REF selects an earlier version of the file;
'stet help diff' lists its forms.

A line that a rewind or undo brings back has its first origin again, and a renamed file
keeps the origins of its lines. "you" is the author of changes between turns. If the author
is unknown, blame says why: the line is older than the first checkpoint, it came with
checkpoints that are no longer kept, a rewind merged it, or it was written while the file was
not captured. "one of several" means that several agents were at work when it was written.

The tool call, such as "·3 Edit", is the last edit in the turn that wrote the line to the
file, or the only command of the turn.

--why shows the prompt, the call and the reply of each turn that wrote lines.
--format agent-trace writes a record in the Agent Trace format for other tools.`,
		Example: "  stet blame checkout/retry.go\n  stet blame checkout/retry.go -L 40,46\n  stet blame checkout/retry.go -L 42 --why\n" +
			"  stet blame main.go turn:5 --json",
		Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveDefault // files
			}
			return a.completeRefs(1)(cmd, args[1:], prefix)
		},
		RunE: a.paged(func(cmd *cobra.Command, args []string) error {
			if flags.format != "" && flags.format != agentTrace {
				return usage(fmt.Errorf("--format: %q is not a format; use %s", flags.format, agentTrace))
			}
			from, to, err := parseLines(flags.lines)
			if err != nil {
				return err
			}
			ref := "@"
			if len(args) == 2 {
				ref = args[1]
			}
			return a.withPlace(cmd.Context(), false, func(p *place) error {
				return a.blame(cmd.Context(), p, args[0], ref, from, to, flags)
			})
		}),
	}
	cmd.Flags().StringVarP(&flags.lines, "lines", "L", "", "show only these lines: 40,46 or 40,+7 or 40")
	cmd.Flags().BoolVar(&flags.why, "why", false, "show the prompt, the call and the reply around each change")
	cmd.Flags().StringVar(&flags.format, "format", "", "write another format: "+agentTrace)
	_ = cmd.RegisterFlagCompletionFunc("format", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{agentTrace}, cobra.ShellCompDirectiveNoFileComp
	}) // fails only for a flag that does not exist
	a.noPagerFlag(cmd)
	return cmd
}

// parseLines reads a range of lines: from 1, both ends included; 0 means the end.
func parseLines(text string) (from, to int, err error) {
	if text == "" {
		return 1, 0, nil
	}
	wrong := usage(fmt.Errorf("-L: invalid lines %q; use 40,46 or 40,+7 or 40", text))
	first, last, several := strings.Cut(text, ",")
	if from, err = strconv.Atoi(first); err != nil || from < 1 {
		return 0, 0, wrong
	}
	if !several {
		return from, from, nil
	}
	if last == "" {
		return from, 0, nil
	}
	count, relative := strings.CutPrefix(last, "+")
	if to, err = strconv.Atoi(count); err != nil || to < 1 {
		return 0, 0, wrong
	}
	if relative {
		to += from - 1
	}
	if to < from {
		return 0, 0, wrong
	}
	return from, to, nil
}

func (a *app) blame(ctx context.Context, p *place, path, ref string, from, to int, flags blameFlags) error {
	conv, err := a.known(ctx, p)
	if err != nil {
		return err
	}
	within, err := p.pathsOf([]string{path})
	if err != nil {
		return err
	}
	return p.withLook(ctx, func(l look) error {
		at, err := l.record(ctx, ref, conv)
		if err != nil {
			return err
		}
		reader := blame.New(l.blobs, p.service.Looking(l.blobs), p.db.Conversations())
		file, err := reader.File(ctx, at, within[0])
		if errors.Is(err, blame.ErrNoFile) && at.ID == "" {
			err = l.uncaptured(ctx, within[0], err)
		}
		if err != nil {
			return err
		}
		if n := len(file.Lines); from > n && (n > 0 || from > 1) {
			return usage(fmt.Errorf("-L: %s has %s", path, plural(int64(n), "line")))
		}
		if to == 0 || to > len(file.Lines) {
			to = len(file.Lines)
		}
		file.Lines = file.Lines[min(from, to+1)-1 : to]
		if flags.format == agentTrace {
			return a.blameTrace(ctx, reader, file)
		}
		shown, err := a.tellLines(ctx, reader, file, flags.why)
		if err != nil {
			return err
		}
		if err := a.print(shown.json(), a.blameText(shown, flags.why)); err != nil {
			return err
		}
		a.tellEnd(file)
		if err := unreadableCheckpoints(file.Damaged); err != nil {
			return err
		}
		return lostRoots(ctx, p.db, path, shown.roots()...)
	})
}

// uncaptured replaces an error about a file without a version if the file exists.
func (l look) uncaptured(ctx context.Context, path string, noFile error) error {
	now, err := l.space.Outline(ctx)
	if err != nil {
		return err
	}
	for _, k := range now.NotCaptured {
		if k.Path == path || k.Dir && strings.HasPrefix(path, k.Path+"/") {
			return fmt.Errorf("%w: %q is not captured: %s", blame.ErrNoFile, path, k.Reason)
		}
	}
	return noFile
}

// roots are the states that the words of the lines are read from.
func (f *shownFile) roots() []blob.ID {
	var roots []blob.ID
	for i, o := range f.Origins {
		if f.words[i] != nil && o.Kind == blame.Agent {
			roots = append(roots, o.At.Root)
		}
	}
	return roots
}

// record returns the checkpoint that a reference names, or the present as one.
func (l look) record(ctx context.Context, ref, conversation string) (*checkpoint.Record, error) {
	at, err := l.side(ctx, ref, conversation)
	if err != nil || at.rec != nil {
		return at.rec, err
	}
	return l.space.Unsaved(ctx, at.tree)
}

// tellEnd says where the history of a file ends.
func (a *app) tellEnd(file *blame.File) {
	if file.Forgotten > 0 {
		a.say("the history of %s begins here: %s before it are no longer kept", file.Path, plural(int64(file.Forgotten), "checkpoint"))
	}
}

func (a *app) blameTrace(ctx context.Context, reader *blame.Reader, file *blame.File) error {
	record, err := reader.AgentTrace(ctx, now(), file)
	if err != nil {
		return err
	}
	record.Tool.Version = thisProgram().Version
	return a.printJSON(record)
}

// shownLine is a line with the words of its origin.
type shownLine struct {
	blame.Line
	call *blame.Call
}

// shownFile is a file with the words of its origins.
type shownFile struct {
	*blame.File
	lines []shownLine
	words []*blame.Words // by origin; nil if no line has it
	whys  []*blame.Story
}

// tellLines reads the words of the lines that are shown.
func (a *app) tellLines(ctx context.Context, reader *blame.Reader, file *blame.File, why bool) (*shownFile, error) {
	shown := &shownFile{File: file, words: make([]*blame.Words, len(file.Origins)), whys: make([]*blame.Story, len(file.Origins))}
	teller := reader.Teller()
	teller.Expect(file)
	teller.WithoutModels = !why && !a.json // a table does not show them
	for _, line := range file.Lines {
		words := shown.words[line.Origin]
		if words == nil {
			var err error
			if words, err = teller.Words(ctx, &file.Origins[line.Origin]); err != nil {
				return nil, err
			}
			shown.words[line.Origin] = words
		}
		call, err := teller.Call(ctx, words, file.Origins[line.Origin].Path, line.Text)
		if err != nil {
			return nil, err
		}
		shown.lines = append(shown.lines, shownLine{line, call})
		if why && shown.whys[line.Origin] == nil {
			if shown.whys[line.Origin], err = teller.Story(ctx, words, call); err != nil {
				return nil, err
			}
		}
	}
	return shown, nil
}

// blameText lays out the lines in columns, or each origin with its story.
func (a *app) blameText(f *shownFile, why bool) string {
	if why {
		return a.whyText(f)
	}
	var rows [][]string
	var widths []int
	for _, line := range f.lines {
		row := a.blameRow(f, line)
		rows = append(rows, row)
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cell))
		}
	}
	p := a.paint()
	var text strings.Builder
	for i, row := range rows {
		for j, cell := range row {
			padded := pad(cell, widths[j])
			switch {
			case j == 0:
				padded = p.dim(padLeft(cell, widths[j]))
			case j == 1:
				padded = p.yellow(padded)
			case j == 4:
				padded = p.dim(padded)
			}
			if widths[j] > 0 {
				text.WriteString(padded + "  ")
			}
		}
		body := strings.TrimSuffix(strings.TrimSuffix(f.lines[i].Text, "\n"), "\r")
		text.WriteString(p.dim("│ ") + printable(strings.ReplaceAll(body, "\t", "    ")) + "\n")
	}
	return a.cutLines(text.String())
}

// cutLines cuts lines at the width of a terminal.
func (a *app) cutLines(text string) string {
	if !isTerminal(a.out) || a.colorful() { // colours do not count
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(cut(strings.TrimSuffix(line, "\n"), a.width()) + "\n")
	}
	return out.String()
}

// blameRow returns the columns of a line: number, checkpoint, author, place, prompt, tool.
func (a *app) blameRow(f *shownFile, line shownLine) []string {
	o, words := &f.Origins[line.Origin], f.words[line.Origin]
	name := "now"
	if o.At.ID != "" {
		name = o.At.Name()
	}
	where := originPlace(o)
	if line.call != nil {
		where += fmt.Sprintf(" ·%d", line.call.Number)
	}
	prompt := ""
	if words.Prompt != "" {
		prompt = `"` + clip(words.Prompt, 40) + `"`
	}
	return []string{strconv.Itoa(line.Number), name, clip(a.originAuthor(o, words), 20), where, prompt, clip(toolText(o, line.call), 30)}
}

// originAuthor names who wrote lines.
func (a *app) originAuthor(o *blame.Origin, words *blame.Words) string {
	switch o.Kind {
	case blame.You:
		return "you"
	case blame.Agent:
		if words.Agent != "" {
			return words.Agent
		}
		return a.short(o.Writer.Conversation)
	case blame.Several:
		return "one of several"
	}
	return "unknown"
}

var unknownWords = map[blame.Why]string{
	blame.WhyFirst: "there at the first checkpoint", blame.WhyForgotten: "no longer kept",
	blame.WhyUnseen: "while not captured", blame.WhyInterrupted: "after an interrupted turn", blame.WhyMerged: "merged by a rewind",
}

// originPlace says when lines were written.
func originPlace(o *blame.Origin) string {
	switch {
	case o.Kind == blame.Unknown:
		return unknownWords[o.Why]
	case o.Kind == blame.Several:
		return few(o.Writer.Among, 3)
	case o.Kind == blame.Agent && o.Writer.Turn > 0:
		return fmt.Sprintf("turn %d", o.Writer.Turn)
	case o.At.ID == "":
		return "not saved yet"
	}
	return o.At.Place()
}

// toolText names the call of a tool, with the command of a shell.
func toolText(o *blame.Origin, call *blame.Call) string {
	switch {
	case call == nil:
		return o.Writer.Tool
	case call.Command != "":
		return call.Tool + ": " + call.Command
	}
	return call.Tool
}

// whyText shows the prompt, the call and the reply of each origin.
func (a *app) whyText(f *shownFile) string {
	p := a.paint()
	var text strings.Builder
	for i, story := range f.whys {
		var numbers []string
		var first *shownLine
		for _, line := range f.lines {
			if line.Origin == i {
				numbers = append(numbers, strconv.Itoa(line.Number))
				if first == nil {
					first = &line
				}
			}
		}
		if first == nil {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\n")
		}
		row := a.blameRow(f, *first)
		fmt.Fprintf(&text, "%s  %s\n", p.bold(linesWord(len(numbers))+few(numbers, 12)), strings.Join(strings.Fields(strings.Join([]string{row[1], row[2], row[3], row[5]}, " ")), " "))
		for _, part := range []struct{ name, body string }{
			{"model", f.words[i].Model}, {"prompt", f.words[i].Prompt}, {"before", story.Before}, {"call", story.Change}, {"reply", story.Reply},
		} {
			if part.body != "" {
				fmt.Fprintf(&text, "%s\n%s\n", p.cyan(part.name), indent(printableLines(strings.TrimRight(part.body, "\n"))))
			}
		}
		if f.words[i].Prompt == "" && f.Origins[i].Kind == blame.Agent {
			text.WriteString(indent("the conversation has no further details") + "\n")
		}
	}
	return text.String()
}

func linesWord(n int) string {
	if n == 1 {
		return "line "
	}
	return "lines "
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
