package intake_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/intake"
)

func TestTitleOfATurn(t *testing.T) {
	long := strings.Repeat("word ", 40)
	for _, c := range []struct {
		own  string
		turn foreign.Turn
		want string
	}{
		{"", foreign.Turn{Prompt: "fix  the\ntotal"}, "fix the total"},
		{"its own", foreign.Turn{Prompt: "fix the total"}, "its own"},
		{"its own", foreign.Turn{Prompt: "report", Automatic: true}, "its own"},
		{"", foreign.Turn{Prompt: "report", Automatic: true}, ""},
		{"", foreign.Turn{Prompt: "/init"}, ""},
		{"", foreign.Turn{Prompt: "/review the retry"}, "/review the retry"},
		{"", foreign.Turn{Prompt: "/etc/hosts looks wrong"}, "/etc/hosts looks wrong"},
		{"", foreign.Turn{Prompt: "<a-b x=\"1\">noise</a-b>\n<c>more</c> fix it"}, "fix it"},
		{"", foreign.Turn{Prompt: "<b>only</b>"}, "<b>only</b>"},
		{"", foreign.Turn{Prompt: "<b>not closed"}, "<b>not closed"},
		{"", foreign.Turn{Prompt: "# Context\n## My request for Codex:\nfix it"}, "fix it"},
		{"", foreign.Turn{Prompt: long}, long[:79] + "…"},
	} {
		if got := intake.Info(foreign.Session{Title: c.own}, c.turn).Title; got != c.want {
			t.Errorf("own title %q, prompt %q: got %q, want %q", c.own, c.turn.Prompt, got, c.want)
		}
	}
}

// A conversation that began without a typed prompt gets its title from the first one, also
// in a later pass, and keeps one that it has.
func TestTitleComesWithTheFirstTypedPrompt(t *testing.T) {
	ctx, f := context.Background(), newFixture(t)
	title := func() string {
		info, err := f.store.Get(ctx, f.id)
		if err != nil {
			t.Fatal(err)
		}
		return info.Title
	}
	f.write(toyLine{ID: "t1", Prompt: "report", Automatic: true, Reply: "a"}, toyLine{ID: "t2", Prompt: "/init", Reply: "b"})
	f.pass()
	if got := title(); got != "" {
		t.Errorf("before anybody typed: %q", got)
	}
	f.write(toyLine{ID: "t3", Prompt: "fix the total", Reply: "c"}, toyLine{ID: "t4", Prompt: "and the tax", Reply: "d"})
	if r := f.pass(); r.Turns != 2 {
		t.Errorf("got %+v", r)
	}
	if got := title(); got != "fix the total" {
		t.Errorf("got %q", got)
	}
	if err := f.store.SetTitle(ctx, f.id, "mine"); err != nil {
		t.Fatal(err)
	}
	f.write(toyLine{ID: "t5", Prompt: "more", Reply: "e"})
	f.pass()
	if got, texts := title(), f.texts(); got != "mine" || texts != "report:a /init:b fix the total:c and the tax:d more:e" {
		t.Errorf("got %q, %s", got, texts)
	}
}
