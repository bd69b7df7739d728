package transcript

import (
	"regexp"
	"strings"
)

// Words returns the text of a message for people. For a message that a program wrote
// on the user's behalf it is a short description in parentheses.
func (m Message) Words() string {
	if m.Role == User && m.Simulated {
		return AutomaticWords(m.Text)
	}
	return m.Text
}

// Speaker is the role to show for a message. A message that a program wrote on the
// user's behalf is not the user's.
func (m Message) Speaker() Role {
	if m.Simulated {
		return System
	}
	return m.Role
}

// AutomaticWords describes in one line a prompt that a program wrote on the user's
// behalf, such as the report of a background task.
func AutomaticWords(text string) string {
	const most = 120 // characters
	kind, tag := "automatic message", openingTag(text)
	about := element(text, "summary")
	switch tag {
	case "task-notification":
		kind = "background task " + taskEnd(element(text, "status"))
	case "turn_aborted":
		kind, about = "the turn before was interrupted", ""
	case "state_snapshot":
		kind, about = "the conversation was compacted", ""
	case "":
		about = text
	default:
		about = Untagged(text)
	}
	if strings.HasPrefix(about, "This session is being continued from a previous conversation") {
		kind, about = "the conversation was compacted", ""
	}
	line := strings.Join(strings.Fields(about), " ")
	if runes := []rune(line); len(runes) > most {
		line = strings.TrimRight(string(runes[:most-1]), " ") + "…"
	}
	if line == "" {
		return "(" + kind + ")"
	}
	return "(" + kind + ": " + line + ")"
}

// taskEnd says how a background task ended.
func taskEnd(status string) string {
	switch status {
	case "failed", "error":
		return "failed"
	case "killed", "stopped", "cancelled", "canceled":
		return "stopped"
	}
	return "finished"
}

var (
	opening = regexp.MustCompile(`^\s*<([a-zA-Z][\w-]*)>`)
	tags    = regexp.MustCompile(`</?[a-zA-Z][\w-]*>`)
)

// openingTag returns the name of the tag that a text begins with, or "".
func openingTag(text string) string {
	if found := opening.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// element returns the content of the first element with a name, or "".
func element(text, name string) string {
	_, rest, ok := strings.Cut(text, "<"+name+">")
	if !ok {
		return ""
	}
	inside, _, _ := strings.Cut(rest, "</"+name+">")
	return strings.TrimSpace(inside)
}

// Untagged returns a text without its tags, which mean nothing to readers.
func Untagged(text string) string { return strings.TrimSpace(tags.ReplaceAllString(text, " ")) }
