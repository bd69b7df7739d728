package transcript_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/transcript"
)

const report = "<task-notification>\n<task-id>a1</task-id>\n<output-file>/tmp/x</output-file>\n<status>completed</status>\n" +
	"<summary>Agent \"Find the\n tests\" completed</summary>\n<result>There are three.</result>\n</task-notification>"

func TestAutomaticWords(t *testing.T) {
	for text, want := range map[string]string{
		report: `(background task finished: Agent "Find the tests" completed)`,
		strings.Replace(report, "completed<", "failed<", 1):                                                `(background task failed: Agent "Find the tests" completed)`,
		"<task-notification>\n<task-id>a1</task-id>…[cut 550 characters]":                                  "(background task finished)",
		"<turn_aborted>\nThe user stopped it.\n</turn_aborted>":                                            "(the turn before was interrupted)",
		"<state_snapshot><goal>x</goal></state_snapshot>":                                                  "(the conversation was compacted)",
		"This session is being continued from a previous conversation that ran out of context. Summary: x": "(the conversation was compacted)",
		"<reminder>be <b>quick</b></reminder>":                                                             "(automatic message: be quick)",
		"Carry out\nthe plan.":                                                                             "(automatic message: Carry out the plan.)",
		strings.Repeat("é ", 200):                                                                          "(automatic message: " + strings.Repeat("é ", 59) + "é…)",
		"":                                                                                                 "(automatic message)",
		"<":                                                                                                "(automatic message: <)",
	} {
		if got := transcript.AutomaticWords(text); got != want {
			t.Errorf("%.40q: got %q, want %q", text, got, want)
		}
	}
}

// What a program wrote in the place of the user is not shown as the user's words, and the
// forms for programs keep it as it is.
func TestAutomaticMessagesAreNotTheUsers(t *testing.T) {
	f := newFixture(t)
	m := user(report)
	m.IsSimulatedMsg = proto.Bool(true)
	f.save(t, "c", turn(t, m, say("Good.")), turn(t, user("by hand")))
	for format, want := range map[transcript.Format]string{
		transcript.Markdown: "background task finished: Agent \"Find the tests\" completed", transcript.HTML: "background task finished: Agent",
		transcript.JSON: "task-notification", transcript.JSONL: "task-notification",
	} {
		text := f.written(t, "c", format, nil)
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", format, want, text)
		}
		if raw := strings.Contains(text, "output-file"); raw != (format == transcript.JSON || format == transcript.JSONL) {
			t.Errorf("%s has the raw text: %v", format, raw)
		}
	}
	for _, m := range f.messages(t, "c", nil) {
		if want := map[bool]transcript.Role{true: transcript.System, false: m.Role}[m.Simulated]; m.Speaker() != want {
			t.Errorf("%q is by %s, want %s", m.Text, m.Speaker(), want)
		}
	}
}
