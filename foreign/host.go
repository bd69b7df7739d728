package foreign

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Host is the computer as an adapter sees it. Tests use one with its own home.
type Host struct {
	// Home is the user's home directory.
	Home string
	// Getenv returns an environment variable; nil means that none is set.
	Getenv func(string) string
	// LookPath finds a program; nil finds none.
	LookPath func(string) (string, error)
}

// ThisHost returns the computer that the program runs on.
func ThisHost() (Host, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Host{}, err
	}
	return Host{Home: home, Getenv: os.Getenv, LookPath: exec.LookPath}, nil
}

// Dir returns the directory that an environment variable names, or one below the home.
func (h Host) Dir(variable string, below ...string) string {
	if h.Getenv != nil && variable != "" {
		if dir := h.Getenv(variable); filepath.IsAbs(dir) {
			return filepath.Clean(dir)
		}
	}
	return filepath.Join(append([]string{h.Home}, below...)...)
}

// Program returns the path of the first program that is found, or "".
func (h Host) Program(names ...string) string {
	if h.LookPath == nil {
		return ""
	}
	for _, name := range names {
		if path, err := h.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Connect describes how an agent calls stet.
type Connect struct {
	// Command is the program with its first arguments: the path of stet, "hook" and the
	// agent's name. Adapters quote it for the shell where the agent uses one.
	Command []string
	// Project, if not "", is the directory whose own settings are changed instead of the
	// user's.
	Project string
	// Dir is a directory in which the agent may run, or "". Its settings can disable the
	// user's.
	Dir string
}

// Line returns the command for an event as a line of a shell.
func (c Connect) Line(event string) string {
	return line(append(slices.Clone(c.Command), event), portable)
}

// Words returns the command as texts, for an agent that runs it without a shell. If a word
// is not UTF-8, which no text can hold, the command is a shell that runs it.
func (c Connect) Words() []string {
	if !slices.ContainsFunc(c.Command, func(word string) bool { return !utf8.ValidString(word) }) {
		return slices.Clone(c.Command)
	}
	return []string{"sh", "-c", "exec " + line(c.Command, portable) + ` "$@"`, "stet"}
}

// Ours returns the part of Line that does not depend on where the program is.
func (c Connect) Ours(event string) string {
	if len(c.Command) < 2 {
		return c.Line(event)
	}
	return " " + Connect{Command: c.Command[1:]}.Line(event)
}

// CommandLine returns words as a line of a POSIX shell. It is always valid UTF-8: other
// words are quoted as in $'b\351.txt'.
func CommandLine(words ...string) string { return line(words, dollar) }

// line quotes words for a shell, and those that are not UTF-8 with a function.
func line(words []string, other func(string) string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@%,"
	quoted := make([]string, len(words))
	for i, word := range words {
		switch {
		case !utf8.ValidString(word):
			quoted[i] = other(word)
		case word == "" || strings.Trim(word, plain) != "":
			quoted[i] = single(word)
		default:
			quoted[i] = word
		}
	}
	return strings.Join(quoted, " ")
}

func single(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// dollar quotes a word for people to read. POSIX has this form only since 2024.
func dollar(word string) string {
	escape := strings.NewReplacer(`\`, `\\`, "'", `\'`)
	return "$'" + pieces(word, escape.Replace, func(octal string) string { return octal }) + "'"
}

// portable quotes a word for any shell: agents run hooks with the system's, such as dash.
func portable(word string) string {
	return pieces(word, single, func(octal string) string { return `"$(printf '` + octal + `')"` })
}

// pieces writes the valid parts of a word with one function, and with another the bytes
// between them, as octal escapes.
func pieces(word string, text, bytes func(string) string) string {
	var out strings.Builder
	for word != "" {
		n := strings.IndexRune(word, utf8.RuneError)
		switch {
		case n < 0:
			n = len(word)
			out.WriteString(text(word))
		case n > 0:
			out.WriteString(text(word[:n]))
		default:
			n = 1
			out.WriteString(bytes(fmt.Sprintf(`\%03o`, word[0])))
		}
		word = word[n:]
	}
	return out.String()
}

// Change is a file that connects an agent.
type Change struct {
	Path string
	// Content is the content of a file that is entirely ours, such as a plugin. Hooks is
	// nil then.
	Content []byte
	// Hooks are entries to add to lists of a JSON file that may also have others'
	// entries.
	Hooks []HookEntry
	// Block is a table to add to a TOML file that may also have others' tables.
	Block *Block
	// Note is what else the user has to do, or "".
	Note string
}

// Block is a table in a TOML settings file.
type Block struct {
	// Table is the table's name, such as "mcp_servers.stet". A table with that name that
	// is not ours stays unchanged.
	Table string
	// Lines are its keys and values, one per line.
	Lines []string
}

// HookEntry is one element of a list in a JSON settings file, or one member of an object.
type HookEntry struct {
	// List has the keys from the top of the file to the list, such as "hooks",
	// "PreToolUse". Missing objects and lists are created.
	List []string
	// Key, if not "", makes the entry the value of this key in the object that List
	// names. A value of the key that is not ours stays unchanged.
	Key string
	// Value is the element: one JSON value. One of its texts contains Ours.
	Value string
	// Ours is a text that identifies an element of the list as ours, whatever release
	// wrote it: the middle of the command.
	Ours string
	// Defaults are keys at the top of the file that it must have if it is created, such
	// as "version", with their JSON values, in order.
	Defaults [][2]string
}
