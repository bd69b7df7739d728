// Package shortcut appends the events inside an agent's turn to the spool, and prints the
// version of a release, before the rest of the program is initialised. It promises that a hook which
// only has to note an event costs little more than the start of a process, and that every
// other call, and whatever it does not understand, goes the usual way.
//
// Go initialises packages as soon as their imports are, so that a package with few imports
// comes early: this one uses the standard library only, and none of it that is large; an
// import of runtime/debug alone doubles its time. It works at its initialisation, so
// importing it is all:
//
//	import _ "github.com/stet-dev/stet/internal/cli/shortcut"
//
// It writes entries of package spool without decoding the payload of the tool; that is
// left to the event that ends the turn.
package shortcut

import (
	"encoding/json"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// Kinds of events as package foreign numbers them.
const (
	toolStart = 3
	toolEnd   = 4
	taskStart = 5
)

var claudeEvents = map[string]int{"PreToolUse": toolStart, "PostToolUse": toolEnd, "PostToolUseFailure": toolEnd, "SubagentStart": taskStart}

// inner are the events inside a turn of the agents whose payload names the session at
// its top.
var inner = map[string]map[string]int{
	"claude-code": claudeEvents,
	"codex":       {"PreToolUse": toolStart, "PostToolUse": toolEnd, "SubagentStart": taskStart},
	"qwen":        claudeEvents,
	"gemini":      {"BeforeTool": toolStart, "AfterTool": toolEnd},
}

// maxPayload is the longest payload that the spool keeps.
const maxPayload = 256 << 10

// patience is how long the payload may take to arrive here.
const patience = time.Second

// entry is an entry of the spool.
type entry struct {
	Time      time.Time       `json:"time"`
	Name      string          `json:"name"`
	Kind      int             `json:"kind"`
	Call      string          `json:"call,omitempty"`
	Session   string          `json:"session,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Bare      bool            `json:"bare,omitempty"`
}

func init() {
	if len(os.Args) == 2 && os.Args[1] == "version" && Release != "" {
		if _, err := os.Stdout.WriteString(VersionLine(Release, Commit, Date, false) + "\n"); err == nil {
			os.Exit(0)
		}
	}
	h, ok := parse(os.Args[1:], os.Getenv)
	if !ok {
		return
	}
	in := readAll(os.Stdin)
	if data, ok := in.within(patience); ok && h.note(data, time.Now()) {
		os.Exit(0)
	}
	read = in
}

// Release is the version, Commit the revision of the sources and Date when it was made.
// Releases set them.
var Release, Commit, Date = "", "", ""

// VersionLine returns a version in one line. Commit and date may be "".
func VersionLine(version, commit, date string, changed bool) string {
	line := "stet " + version
	if commit == "" {
		return line
	}
	line += " (commit " + commit[:min(12, len(commit))]
	if len(date) >= len("2006-01-02") {
		line += ", " + date[:len("2006-01-02")]
	}
	if changed {
		line += ", changed"
	}
	return line + ")"
}

// hook is a call of the hook client that may be short.
type hook struct {
	dir, agent, event string
	kind              int
}

// parse recognises a hook inside a turn of a store whose directory is plain to see.
func parse(args []string, getenv func(string) string) (hook, bool) {
	store := ""
	if len(args) == 5 && args[0] == "--store" {
		store, args = args[1], args[2:]
	}
	if len(args) != 3 || args[0] != "hook" {
		return hook{}, false
	}
	h := hook{agent: args[1], event: args[2]}
	h.kind = inner[h.agent][h.event]
	if h.kind == 0 {
		return h, false
	}
	if store == "" {
		store = storeOf(getenv)
	}
	h.dir = store + ".hooks"
	return h, absolute(runtime.GOOS, store) && !strings.Contains(store, "..") && !strings.HasSuffix(store, "/") && !strings.HasSuffix(store, `\`)
}

// absolute reports whether a path begins at a root, which on Windows is that of a drive.
func absolute(goos, path string) bool {
	if goos == "windows" {
		return len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
	}
	return strings.HasPrefix(path, "/")
}

// storeOf returns the directory of the store if neither a file nor a variable could name
// another, else "".
func storeOf(getenv func(string) string) string {
	if store := getenv("STET_STORE"); store != "" {
		return store
	}
	config, data := getenv("XDG_CONFIG_HOME"), getenv("XDG_DATA_HOME")
	usualConfig, usualData := getenv("HOME")+"/.config", getenv("HOME")+"/.local/share"
	switch {
	case runtime.GOOS == "windows" && getenv("LOCALAPPDATA") != "":
		usualConfig, usualData = getenv("LOCALAPPDATA"), getenv("LOCALAPPDATA")
	case runtime.GOOS != "linux" || getenv("HOME") == "":
		return ""
	}
	if getenv("STET_CONFIG") != "" {
		return ""
	}
	if config == "" {
		config = usualConfig
	}
	if data == "" {
		data = usualData
	}
	settings, err := os.ReadFile(config + "/stet/config.toml")
	if err != nil && !os.IsNotExist(err) || strings.Contains(string(settings), "store") {
		return ""
	}
	return data + "/stet"
}

// note appends the event to the current file of its session. It reports false if the
// event has to go the usual way; then nothing, or half a line, was written.
func (h hook) note(payload []byte, now time.Time) bool {
	var p struct {
		Session string `json:"session_id"`
		Dir     string `json:"cwd"`
		Name    string `json:"hook_event_name"`
		Call    string `json:"tool_use_id"`
	}
	if len(payload) > maxPayload || json.Unmarshal(payload, &p) != nil || p.Name != h.event || !plain(p.Session) {
		return false
	}
	dir := h.dir + "/" + h.agent + "/" + p.Session
	files, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	last := ""
	for _, f := range files {
		if name := f.Name(); len(name) == len("00000000.jsonl") && strings.HasSuffix(name, ".jsonl") && name > last {
			last = name
		}
	}
	line, err := json.Marshal(entry{
		Time: now, Name: h.event, Kind: h.kind, Call: p.Call, Session: p.Session, Workspace: p.Dir, Payload: payload, Bare: true,
	})
	if last == "" || err != nil {
		return false
	}
	f, err := os.OpenFile(dir+"/"+last, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	_, err = f.Write(append(append([]byte{'\n'}, line...), '\n'))
	return f.Close() == nil && err == nil
}

// plain reports whether the spool uses an id as the name of a directory.
func plain(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return id != "" && len(id) <= 100 && id[0] != '.' && strings.Trim(id, letters) == ""
}

// input is the standard input, which is read at the side.
type input struct {
	done chan struct{}
	data []byte
	err  error
	at   int
}

// read is the input that was read and not used.
var read *input

// Stdin returns what the standard input held if this package has read it, else the
// given reader.
func Stdin(given io.Reader) io.Reader {
	if read == nil || given != io.Reader(os.Stdin) {
		return given
	}
	return read
}

// readAll reads at most somewhat more than hooks accept.
func readAll(r io.Reader) *input {
	in := &input{done: make(chan struct{})}
	go func() {
		in.data, in.err = io.ReadAll(io.LimitReader(r, 17<<20))
		close(in.done)
	}()
	return in
}

// within returns the input if it ends in time.
func (in *input) within(limit time.Duration) ([]byte, bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-in.done:
		return in.data, in.err == nil
	case <-timer.C:
		return nil, false
	}
}

// Read waits for the end of the input.
func (in *input) Read(p []byte) (int, error) {
	<-in.done
	n := copy(p, in.data[in.at:])
	in.at += n
	switch {
	case n > 0 || len(p) == 0:
		return n, nil
	case in.err != nil:
		return 0, in.err
	}
	return 0, io.EOF
}
