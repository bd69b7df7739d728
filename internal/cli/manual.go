package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Manual returns what the verbs have besides: a manual page for the program and for each
// verb, as man/NAME.1, and the scripts that shells complete with, below completions/.
func Manual(when time.Time) (map[string]string, error) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	root := a.root()
	out := make(map[string]string)
	addPages(out, root, when)
	for name, write := range map[string]func(io.Writer) error{
		"stet.bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"_stet":     root.GenZshCompletion,
		"stet.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"stet.ps1":  root.GenPowerShellCompletionWithDesc,
	} {
		var b strings.Builder
		if err := write(&b); err != nil {
			return nil, err
		}
		out["completions/"+name] = b.String()
	}
	return out, nil
}

func addPages(out map[string]string, cmd *cobra.Command, when time.Time) {
	if cmd.Hidden || cmd.Name() == "help" {
		return
	}
	out["man/"+pageName(cmd)+".1"] = manualPage(cmd, when)
	for _, sub := range cmd.Commands() {
		addPages(out, sub, when)
	}
}

// pageName is the name of a verb's page, as in stet-rewind.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func manualPage(cmd *cobra.Command, when time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 %s stet\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.nf\n%s\n.fi\n", strings.ToUpper(roff(pageName(cmd))),
		when.Format(time.DateOnly), roff(pageName(cmd)), roff(cmd.Short), roff(cmd.UseLine()))
	section := func(title, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(&b, ".SH %s\n.nf\n%s\n.fi\n", title, roff(text))
		}
	}
	section("DESCRIPTION", cmd.Long)
	if flags := flagList(cmd.NonInheritedFlags()); flags != "" {
		b.WriteString(".SH OPTIONS\n" + flags)
	}
	if flags := flagList(cmd.InheritedFlags()); flags != "" {
		b.WriteString(".SH OPTIONS OF ALL VERBS\n" + flags)
	}
	section("EXAMPLES", cmd.Example)
	var others []string
	if cmd.HasParent() {
		others = append(others, pageName(cmd.Parent()))
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			others = append(others, pageName(sub))
		}
	}
	for i, name := range others {
		others[i] = "\\fB" + roff(name) + "\\fR(1)"
	}
	if len(others) > 0 {
		b.WriteString(".SH SEE ALSO\n" + strings.Join(others, ",\n") + "\n")
	}
	return b.String()
}

func flagList(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, about := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		if f.DefValue != "" && !slices.Contains([]string{"false", "0", "[]", "0s"}, f.DefValue) {
			about += " (" + f.DefValue + ")"
		}
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(name), roff(about))
	})
	return b.String()
}

// roff escapes what means something in a manual page.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
