package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/bisect"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
)

type bisectJSON struct {
	Schema string `json:"schema"`
	// FirstBad is the checkpoint from which on the command fails; null for the working tree.
	FirstBad *checkpoint.RecordJSON `json:"first_bad"`
	LastGood *checkpoint.RecordJSON `json:"last_good"`
	// WorkingTree says that the working tree is the first bad state.
	WorkingTree bool `json:"working_tree,omitempty"`
	// MayBe lists checkpoints that could not be tested and may be the first bad ones, too.
	MayBe     []string       `json:"may_be,omitempty"`
	Forgotten uint64         `json:"forgotten,omitempty"`
	By        string         `json:"by"`
	Prompt    string         `json:"prompt,omitempty"`
	Edit      *editJSON      `json:"edit,omitempty"`
	Files     []fileDiffJSON `json:"files"`
	// TakeOut is the command that takes out just this turn.
	TakeOut []string `json:"take_out,omitempty"`
	Output  string   `json:"output"`
	States  int      `json:"states"`
	Tests   int      `json:"tests"`
}

type editJSON struct {
	Turn uint64 `json:"turn"`
	Call int    `json:"call"`
	Tool string `json:"tool"`
	Path string `json:"path"`
}

// report prints what was found.
func (b *bisecting) report(ctx context.Context, found bisect.Found, step []bisectState) error {
	good, bad := &b.states[found.Good], &b.states[found.Bad]
	value := bisectJSON{
		Schema: "stet.bisect.v1", WorkingTree: bad.rec == nil, Forgotten: bad.forgotten, Files: []fileDiffJSON{},
		States: len(b.states), Tests: b.tests, LastGood: good.rec.JSON(), Output: strings.TrimPrefix(lastWords(b.output[bad.tree.String()]), "\n"),
	}
	if bad.rec != nil {
		value.FirstBad = bad.rec.JSON()
		turn, err := b.p.timeline().Turn(ctx, bad.rec)
		if err != nil {
			return err
		}
		value.Prompt = turn.Text()
	}
	for _, i := range found.Skipped {
		value.MayBe = append(value.MayBe, b.states[i].name)
	}
	value.By, value.TakeOut = b.blame(good, bad, len(found.Skipped) > 0)
	from, to := good, bad
	if len(step) > 0 {
		from, to = &step[0], &step[1]
		value.Edit = &editJSON{to.edit.Turn, to.edit.Step, to.edit.Tool, to.edit.Path}
	}
	changes, err := b.changes(ctx, from, to)
	if err != nil {
		return err
	}
	for _, c := range changes {
		file, err := fileDiff(ctx, b.look.blobs, c)
		if err != nil {
			return err
		}
		value.Files = append(value.Files, file)
	}
	if err := b.app.print(value, b.text(&value, good, bad)); err != nil {
		return err
	}
	if len(found.Skipped) > 0 {
		return silentExit{ExitNotFound}
	}
	return nil
}

// blame says who made the change between two states, and how to take it out.
func (b *bisecting) blame(good, bad *bisectState, unsure bool) (by string, takeOut []string) {
	rec := bad.rec
	if rec == nil {
		return "changes in the working tree since " + good.name, nil
	}
	writer := rec.Writer()
	switch {
	case unsure || bad.forgotten > 0 || writer.Class == checkpoint.BySeveral:
		return "one of several changes", nil
	case rec.Kind == checkpoint.Rewound:
		return "a rewind", nil
	case writer.Class == checkpoint.ByUserOrLost:
		return "an interrupted turn, or you", nil
	case writer.Class != checkpoint.ByConversation:
		return "you", nil
	case writer.Turn == 0:
		return "conversation " + b.app.short(writer.Conversation), nil
	}
	takeOut = []string{"stet", "rewind", "--turn", fmt.Sprint(writer.Turn), "-c", writer.Conversation}
	return fmt.Sprintf("turn %d of %s", writer.Turn, b.app.short(writer.Conversation)), takeOut
}

// text is the report for people.
func (b *bisecting) text(v *bisectJSON, good, bad *bisectState) string {
	var text strings.Builder
	p := b.app.paint()
	name := "working tree"
	if bad.rec != nil {
		name = bad.rec.Name() + "  " + when(bad.rec.Time, now())
	}
	head := "broken by " + v.By
	if len(v.MayBe) > 0 {
		head = fmt.Sprintf("broken after %s: %s could not be tested", good.name, strings.Join(v.MayBe, ", "))
	}
	fmt.Fprintf(&text, "%s  %s\n", p.yellow(name), p.bold(head))
	if v.Prompt != "" {
		fmt.Fprintf(&text, "  asked     %s\n", clip(v.Prompt, 200))
	}
	if v.Edit != nil {
		fmt.Fprintf(&text, "  call %d    %s %s\n", v.Edit.Call, v.Edit.Tool, printable(v.Edit.Path))
	}
	fmt.Fprintf(&text, "  last good %s\n", good.label())
	if v.Forgotten > 0 {
		fmt.Fprintf(&text, "  %s between them are no longer kept; the change is in one of them or in this one\n", plural(int64(v.Forgotten), "checkpoint"))
	}
	fmt.Fprintf(&text, "  %s among %s\n", plural(int64(v.Tests), "test"), plural(int64(v.States), "state"))
	if v.Output != "" {
		fmt.Fprintf(&text, "\n%s\n", printableLines(v.Output))
	}
	text.WriteString("\n")
	if b.app.folds(len(v.Files)) {
		text.WriteString(b.app.statText(v.Files))
	} else {
		for _, f := range v.Files {
			text.WriteString(b.app.fileText(f))
		}
	}
	if len(v.TakeOut) > 0 {
		fmt.Fprintf(&text, "\nrevert just this turn: %s\n", foreign.CommandLine(append(v.TakeOut[:len(v.TakeOut)-1:len(v.TakeOut)-1], b.app.short(v.TakeOut[len(v.TakeOut)-1]))...))
	}
	return text.String()
}
