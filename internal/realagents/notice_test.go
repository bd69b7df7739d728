package realagents_test

import (
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/realagents"
)

// TestTheAgentLearnsOfARewind rewinds the files under a session that goes on: the model is
// shown a line about it with the next prompt, and another one when the rewind is undone.
func TestTheAgentLearnsOfARewind(t *testing.T) {
	each(t, func(t *testing.T, a realagents.Agent) {
		if a.Resume == nil {
			t.Skipf("the hooks of %s cannot show the model a line of text", a.Name)
		}
		b := realagents.NewBox(t, a)
		b.Stet("connect", a.Name, "-y")
		step(t, a.Name, "notice", func(t *testing.T) { notices(t, b.In(t), a) })
	})
}

func notices(t *testing.T, b *realagents.Box, a realagents.Agent) {
	const rewound, undone = "the user rewound the files to after turn 1", "the user undid a rewind"
	b.Prompt(nil, one)
	session := ""
	for _, c := range lines[conversation](t, b.Stet("ls", "--json")) {
		if c.Agent == a.Name {
			session = c.ID
		}
	}
	b.Prompt(a.Resume(session), two)
	if shown(b, 0, rewound) {
		t.Error("the model was shown a rewind before there was one")
	}
	b.Stet("rewind", "turn:1", "-y")
	for _, next := range []struct{ prompt, line string }{{"turn three: look\n::bash true\n::say seen", rewound}, {"turn four: look\n::bash true\n::say seen", undone}} {
		known := len(b.Model.Requests())
		b.Prompt(a.Resume(session), next.prompt)
		if !shown(b, known, next.line) {
			t.Errorf("the model was not shown %q; the last request: %.4000s", next.line, b.Model.Requests()[len(b.Model.Requests())-1].Body)
		}
		if next.line == rewound {
			b.Stet("undo")
		}
	}
}

// shown reports whether a request to the model, from one on, has a text.
func shown(b *realagents.Box, from int, text string) bool {
	for _, r := range b.Model.Requests()[from:] {
		if strings.Contains(string(r.Body), text) {
			return true
		}
	}
	return false
}
