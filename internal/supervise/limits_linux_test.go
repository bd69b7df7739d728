package supervise

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain is called again by commands with limits.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == LimitedVerb {
		println(Become(os.Args[2:]).Error())
		os.Exit(ExitNotExecutable)
	}
	os.Exit(m.Run())
}

func TestLimitsHoldForACommandAndWhatItStarts(t *testing.T) {
	dir := t.TempDir()
	sh, err := Find("sh", dir)
	if err != nil {
		t.Fatal(err)
	}
	run := func(l Limits, script string) (int, string) {
		t.Helper()
		var out bytes.Buffer
		cmd := &Command{Path: sh, Args: []string{"sh", "-c", script}, Dir: dir, Out: &out, Err: &out, Limits: l}
		code, err := cmd.RunGroup(t.Context(), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		return code, out.String()
	}
	// A file stops growing; the shell that the command starts is held to it, too.
	code, out := run(Limits{FileSize: 1 << 20}, "sh -c 'head -c 4000000 /dev/zero > big'; echo ended $?")
	info, err := os.Stat(filepath.Join(dir, "big"))
	if err != nil || info.Size() > 1<<20 || !strings.Contains(out, "ended") || strings.Contains(out, "ended 0") {
		t.Errorf("code %d, %q, file %v, %v", code, out, info, err)
	}
	const limits = "grep -e 'Max data size' -e 'Max file size' -e 'Max processes' /proc/self/limits"
	_, out = run(Limits{Memory: 123 << 20, Processes: 4321}, limits)
	if !strings.Contains(out, "128974848") || !strings.Contains(out, "4321") {
		t.Errorf("limits: %s", out)
	}
	if _, none := run(Limits{}, limits); strings.Contains(none, "128974848") {
		t.Errorf("without limits: %s", none)
	}
	// The name and the exit code of a command stay, and memory that it may not have it does
	// not get.
	if code, out := run(Limits{FileSize: 1 << 30}, `echo "$0"; exit 7`); code != 7 || out != "sh\n" {
		t.Errorf("code %d, %q", code, out)
	}
	if code, out := run(Limits{Memory: 32 << 20}, `x=$(head -c 60000000 /dev/zero | tr '\0' x); echo got ${#x}`); strings.Contains(out, "got 60000000") {
		t.Errorf("code %d: it got the memory: %.80s", code, out)
	}
}

func TestLimitsThatAreNone(t *testing.T) {
	for _, args := range [][]string{nil, {"memory=1,file=1,processes=1"}, {"much", "/bin/true", "true"}, {"memory=x,file=1,processes=1", "/bin/true", "true"}} {
		if err := Become(args); err == nil || errors.Is(err, ErrNoLimits) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
