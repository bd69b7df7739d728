package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stet-dev/stet/internal/testenv"
)

// TestMain lets scripts run the command line as a process of its own. Nothing is
// left behind by it, unless a test wants that.
func TestMain(m *testing.M) {
	if os.Getenv(backgroundSetting) == "" {
		os.Setenv(backgroundSetting, "false")
	}
	testscript.Main(m, map[string]func(){
		"stet":    func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"fixture": func() { os.Exit(fixtureMain(os.Args[1:])) },
	})
}

const backgroundSetting = "STET_COMPACT_BACKGROUND"

// TestScripts runs testdata/script. Beside the usual commands of testscript there
// are:
//
//	code N CMD…       run CMD, which must end with exit code N
//	json PATH [WANT]  look at the JSON on stdout: the value at PATH must be WANT;
//	                  without WANT it must be there. PATH is a.0.b; with lines of
//	                  JSON the first element counts the lines.
//	setjson VAR PATH  set an environment variable to a value of the JSON on stdout
//	setout VAR        set an environment variable to the trimmed stdout
//	tty FILE N CMD…   run CMD on a terminal, see scriptTTY
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: false,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			fixtures, err := filepath.Abs("../../foreign/cursor/testdata")
			if err != nil {
				return err
			}
			home := env.WorkDir + "-home" // not inside: a directory that holds the home is refused as a workspace
			env.Vars = append(env.Vars,
				"HOME="+home, "XDG_DATA_HOME="+filepath.Join(home, "data"), "XDG_CONFIG_HOME="+filepath.Join(home, "config"),
				"STET_STORE="+filepath.Join(env.WorkDir, "store"), "FIXTURES="+fixtures, "USER=tester", "TZ=UTC", backgroundSetting+"=false", "NO_COLOR=", "TERM=xterm",
				"STET_HOOK_WAIT_MS=600000", // a busy machine takes longer than an agent waits
			)
			return os.MkdirAll(home, 0o700)
		},
		Condition: func(name string) (bool, error) {
			if name != "full" { // long ones begin with [!full] skip, or end there with stop
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return testenv.Full(), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":    scriptCode,
			"json":    scriptJSON,
			"setjson": scriptSetJSON,
			"setout":  scriptSetOut,
			"tty":     scriptTTY,
		},
	})
}

func scriptCode(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: code N CMD…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func scriptSetOut(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	got, ok := lookupJSON(ts, args[0])
	switch {
	case len(args) == 1 && ok == neg:
		ts.Fatalf("%s: there is %v", args[0], got)
	case len(args) == 2 && (got == args[1]) == neg:
		ts.Fatalf("%s: got %q, want %q", args[0], got, args[1])
	}
}

func scriptSetJSON(ts *testscript.TestScript, _ bool, args []string) {
	got, ok := lookupJSON(ts, args[1])
	if !ok {
		ts.Fatalf("no %s in the JSON", args[1])
	}
	ts.Setenv(args[0], got)
}

// lookupJSON finds a value in stdout, or in stderr if there is no stdout.
func lookupJSON(ts *testscript.TestScript, path string) (string, bool) {
	text := ts.ReadFile("stdout")
	if text == "" {
		text = ts.ReadFile("stderr")
	}
	var lines []any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	for dec.More() {
		var value any
		if err := dec.Decode(&value); err != nil {
			ts.Fatalf("no JSON: %v\n%s", err, text)
		}
		lines = append(lines, value)
	}
	var at any = lines
	if len(lines) == 1 {
		at = lines[0]
	}
	for step := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			next, ok := v[step]
			if !ok {
				return "", false
			}
			at = next
		case []any:
			if step == "len" {
				return strconv.Itoa(len(v)), true
			}
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return "", false
			}
			at = v[i]
		default:
			return "", false
		}
	}
	return jsonText(at), true
}

func jsonText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any, map[string]any:
		text, _ := json.Marshal(v)
		return string(text)
	}
	return fmt.Sprint(v)
}

func TestEveryVerbExplainsItself(t *testing.T) {
	a := &app{out: new(bytes.Buffer), err: new(bytes.Buffer), in: strings.NewReader("")}
	for _, cmd := range a.commands() {
		if cmd.Short == "" || cmd.GroupID == "" {
			t.Errorf("%s: Short %q, group %q", cmd.Name(), cmd.Short, cmd.GroupID)
		}
		for _, sub := range append(cmd.Commands(), cmd) {
			if sub.Runnable() && sub.Args == nil && sub.Name() != "verify" {
				t.Errorf("%s takes any arguments", sub.CommandPath())
			}
		}
	}
}
