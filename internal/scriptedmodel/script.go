package scriptedmodel

import "strings"

// Step is one thing that a script tells the model to do.
type Step struct {
	// Do is "write", "edit", "read", "bash", "task" or "history".
	Do string
	// Path is the file of write, edit and read.
	Path string
	// Old and New are the texts of edit; write has New only.
	Old, New string
	// Text is the command of bash or the prompt of task.
	Text string
}

// Script is a prompt that tells the model what to do.
type Script struct {
	// Title is the line before the first step.
	Title string
	Steps []Step
	// Say is the last answer.
	Say string
}

// Parse finds the scripts in a text. A script is a line of words and the lines of steps
// that follow it at once:
//
//	::write FILE TEXT        creates a file with one line; without a tool for that, with the shell
//	::edit FILE OLD => NEW   replaces a text in a file
//	::read FILE              reads a file, where the agent has a tool for that
//	::bash COMMAND           runs a command
//	::history                calls the tool history of 'stet mcp'
//	::task                   starts a subagent, whose prompt are the lines that follow
//	::> LINE                 and begin with this
//	::say TEXT               the last answer; without it, "done"
//
// Agents put texts of their own around a prompt, also into the same message: they do not
// matter. A step that is not known is part of no script.
func Parse(text string) []Script {
	var out []Script
	title, inside := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		directive, rest, found := cutDirective(line)
		if !found {
			title, inside = line, false
			continue
		}
		if !inside {
			out, inside = append(out, Script{Title: strings.TrimPrefix(title, `"`), Say: "done"}), true
		}
		out[len(out)-1].add(directive, rest)
	}
	return out
}

// cutDirective splits a line into the name of its directive and the rest.
func cutDirective(line string) (directive, rest string, found bool) {
	line, found = strings.CutPrefix(line, "::")
	if !found {
		return "", "", false
	}
	directive, rest, _ = strings.Cut(line, " ")
	switch directive {
	case "write", "edit", "read", "bash", "task", "history", "say", ">":
		return directive, rest, true
	}
	return "", "", false
}

func (s *Script) add(directive, rest string) {
	step := Step{Do: directive}
	switch directive {
	case "say":
		s.Say = strings.TrimSuffix(rest, `"`) // one agent quotes prompts
		return
	case ">":
		if n := len(s.Steps); n > 0 && s.Steps[n-1].Do == "task" {
			s.Steps[n-1].Text += rest + "\n"
		}
		return
	case "write":
		step.Path, step.New, _ = strings.Cut(rest, " ")
		step.New += "\n"
	case "edit":
		path, texts, _ := strings.Cut(rest, " ")
		step.Path = path
		step.Old, step.New, _ = strings.Cut(texts, " => ")
	case "read":
		step.Path = rest
	case "bash":
		step.Text = rest
	}
	s.Steps = append(s.Steps, step)
}

// prompts returns the titles of all scripts of a conversation.
func (e exchange) prompts() []string {
	var out []string
	for _, m := range e.messages {
		if !m.user {
			continue
		}
		for _, s := range Parse(m.text) {
			out = append(out, s.Title)
		}
	}
	return out
}

// answer takes the next step of the last script. The calls since then are the steps that
// are done.
func (e exchange) answer(dir string) answer {
	if e.schema != nil {
		return answer{text: e.schema.sample()}
	}
	done := 0
	for i := len(e.messages) - 1; i >= 0; i-- {
		m := e.messages[i]
		done += m.calls
		if !m.user {
			continue
		}
		scripts := Parse(m.text)
		if len(scripts) == 0 {
			continue
		}
		last := scripts[len(scripts)-1]
		if len(e.tools) == 0 {
			return answer{text: last.Title} // a title or a summary is asked for
		}
		return e.step(last, done, dir)
	}
	return answer{text: "there is no script"}
}

func (e exchange) step(s Script, done int, dir string) answer {
	for _, step := range s.Steps {
		c, ok := e.callFor(step, dir)
		if !ok && step.Do == "read" {
			continue // the agent does without
		}
		if done > 0 {
			done--
			continue
		}
		if !ok {
			return answer{text: "no tool for " + step.Do + " among " + strings.Join(e.toolNames(), ", ")}
		}
		return answer{call: c}
	}
	return answer{text: s.Say}
}
