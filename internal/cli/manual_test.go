package cli

import (
	"strings"
	"testing"
	"time"
)

func TestEveryVerbHasAManualPage(t *testing.T) {
	files, err := Manual(time.Date(2026, 11, 17, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range (&app{}).root().Commands() {
		if _, ok := files["man/stet-"+verb.Name()+".1"]; ok == (verb.Hidden || verb.Name() == "help") {
			t.Errorf("stet %s: hidden %v, has a page %v", verb.Name(), verb.Hidden, ok)
		}
	}
	page := files["man/stet-rewind.1"]
	for _, want := range []string{
		`.TH STET\-REWIND 1 2026-11-17 stet` + "\n", ".SH NAME\nstet\\-rewind \\- ", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH OPTIONS\n", `\-\-dry\-run`, `\fBstet\fR(1)`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of rewind has no %q:\n%s", want, page)
		}
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, ".") && !strings.HasPrefix(line, ".SH ") && !strings.HasPrefix(line, ".TH ") && line != ".nf\n" && line != ".fi\n" && line != ".TP\n" {
			t.Errorf("%q is no request of a manual page", line)
		}
	}
	for _, name := range []string{"stet.bash", "_stet", "stet.fish", "stet.ps1"} {
		if !strings.Contains(files["completions/"+name], "stet") {
			t.Errorf("there is no completion %s", name)
		}
	}
}
