package intake

import (
	"regexp"
	"strings"

	"github.com/stet-dev/stet/foreign"
)

// titleOf returns the title of a conversation: the agent's own, or the words of the
// first prompt that a person typed. It is "" as long as there is neither: a prompt
// that a program wrote, or a command to the agent, says nothing about the
// conversation.
func titleOf(s foreign.Session, t foreign.Turn) string {
	if s.Title != "" {
		return title(s.Title)
	}
	if t.Automatic || command.MatchString(t.Prompt) {
		return ""
	}
	return title(typed(t.Prompt))
}

// command is a command without words, such as /init.
var command = regexp.MustCompile(`^\s*/[\w:.-]+\s*$`)

// request is what editors put between what they add to a prompt and what a person typed.
var request = regexp.MustCompile(`(?m)^## My request for Codex:`)

// opening is a tag that a prompt begins with. Programs put what they add into such elements.
var opening = regexp.MustCompile(`^\s*<([a-zA-Z][\w-]*)[^<>]*>`)

// typed returns the part of a prompt that a person typed, without what programs put in
// front of it. It is the whole prompt if nothing else would remain.
func typed(prompt string) string {
	if at := request.FindStringIndex(prompt); at != nil {
		prompt = prompt[at[1]:]
	}
	rest := prompt
	for {
		tag := opening.FindStringSubmatch(rest)
		if tag == nil {
			break
		}
		end := "</" + tag[1] + ">"
		at := strings.Index(rest, end)
		if at < 0 {
			break
		}
		rest = rest[at+len(end):]
	}
	if strings.TrimSpace(rest) == "" {
		return prompt
	}
	return rest
}

// title is the beginning of a text, in one line.
func title(text string) string {
	const most = 80
	line := strings.Join(strings.Fields(valid(text)), " ")
	runes := []rune(line)
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return line
}
