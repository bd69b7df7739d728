package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// buildProgram builds a program as releases are built.
func buildProgram(b *testing.B, pkg string) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "program")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return program
}

// BenchmarkHook compares the hook client inside a turn with git --version and with a Go
// program that does nothing, one after the other.
func BenchmarkHook(b *testing.B) {
	stet := buildProgram(b, "../../cmd/stet")
	noop := filepath.Join(b.TempDir(), "noop.go")
	if err := os.WriteFile(noop, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	noop = buildProgram(b, noop)
	home := b.TempDir()
	env := append(os.Environ(), "HOME="+home, "STET_STORE="+filepath.Join(home, "store"))
	payload := func(event string) string {
		return fmt.Sprintf(`{"session_id":"s","cwd":%q,"prompt_id":"p","hook_event_name":%q,"tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t"}`, home, event)
	}
	run := func(in string, args ...string) time.Duration {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env, cmd.Stdin = env, strings.NewReader(in)
		began := time.Now()
		if err := cmd.Run(); err != nil {
			b.Fatal(args, err)
		}
		return time.Since(began)
	}
	run(payload("SessionStart"), stet, "hook", "claude-code", "SessionStart")
	var ours, git, nothing []time.Duration
	for b.Loop() {
		ours = append(ours, run(payload("PreToolUse"), stet, "hook", "claude-code", "PreToolUse"))
		git = append(git, run("", "git", "--version"))
		nothing = append(nothing, run("", noop))
	}
	ms := func(times []time.Duration, share int) float64 {
		slices.Sort(times)
		return times[(len(times)-1)*share/100].Seconds() * 1000
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(ours, 50), "p50-ms")
	b.ReportMetric(ms(ours, 99), "p99-ms")
	b.ReportMetric(ms(git, 50), "git-p50-ms")
	b.ReportMetric(ms(git, 99), "git-p99-ms")
	b.ReportMetric(ms(nothing, 50), "noop-p50-ms")
	b.ReportMetric(ms(ours, 50)/ms(git, 50), "ours/git")
}

// BenchmarkImport compares the import of generated sessions with reading and decoding
// their bytes. STET_IMPORT_MB is their size in MB; the default is 64.
func BenchmarkImport(b *testing.B) {
	size := 64
	if n, err := strconv.Atoi(os.Getenv("STET_IMPORT_MB")); err == nil {
		size = n
	}
	stet, home := buildProgram(b, "../../cmd/stet"), b.TempDir()
	writeSessions(b, filepath.Join(home, ".claude", "projects", "-src-shop"), size)
	env := append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, backgroundSetting+"=false")
	var ours, plain time.Duration
	memory := int64(0)
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		decodeSessions(b, home)
		plain += time.Since(began)
		cmd := exec.Command(stet, "--store", filepath.Join(home, "store"+strconv.Itoa(n)), "import", "--from", "claude-code", "-y", "-q")
		cmd.Env = env
		began = time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		ours += time.Since(began)
		memory = max(memory, peak(cmd.ProcessState))
	}
	mb := float64(size * b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(mb/ours.Seconds(), "MB/s")
	b.ReportMetric(mb/plain.Seconds(), "decode-MB/s")
	b.ReportMetric(plain.Seconds()/ours.Seconds(), "ratio")
	b.ReportMetric(float64(memory)/(1<<20), "peak-MiB")
}

// writeSessions writes sessions of some megabytes each.
func writeSessions(b *testing.B, dir string, mb int) {
	b.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2026))
	words := strings.Fields("the order cart price of a customer is in stock and func return if err nil test line file diff index total sum for range key value")
	text := func(n int) string {
		var s strings.Builder
		for s.Len() < n {
			fmt.Fprintf(&s, "%s %d ", words[random.IntN(len(words))], random.IntN(1000))
		}
		return s.String()
	}
	for left, n := mb<<20, 0; left > 0; n++ {
		var out bytes.Buffer
		id := fmt.Sprintf("%08d-0000-4000-8000-000000000000", n)
		parent, turn := "null", 0
		line := func(kind, uuid, rest string) {
			at := time.Date(2026, 11, 1, n%24, turn/60%60, turn%60, 0, time.UTC).Format(time.RFC3339)
			fmt.Fprintf(&out, `{"type":%q,"uuid":%q,"parentUuid":%s,"promptId":"p%d","cwd":"/src/shop","sessionId":%q,"timestamp":%q,"message":{%s}}`+"\n", kind, id+uuid, parent, turn, id, at, rest)
			parent = strconv.Quote(id + uuid)
		}
		for ; out.Len() < min(left, 4<<20); turn++ {
			line("user", fmt.Sprint("u", turn), fmt.Sprintf(`"role":"user","content":%q`, text(200)))
			for call := range 4 {
				use := fmt.Sprintf("toolu_%d_%d", turn, call)
				line("assistant", "a"+use, fmt.Sprintf(`"id":"m%s","role":"assistant","model":"m","content":[{"type":"tool_use","id":%q,"name":"Write","input":{"file_path":"/src/shop/a.go","content":%q}}]`, use, use, text(2000)))
				line("user", "r"+use, fmt.Sprintf(`"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]`, use, text(6000)))
			}
			line("assistant", fmt.Sprint("e", turn), fmt.Sprintf(`"id":"e%d","role":"assistant","model":"m","content":[{"type":"text","text":%q}]`, turn, text(800)))
		}
		if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), out.Bytes(), 0o600); err != nil {
			b.Fatal(err)
		}
		left -= out.Len()
	}
}

// decodeSessions reads every line as a JSON value.
func decodeSessions(b *testing.B, home string) {
	b.Helper()
	paths, _ := filepath.Glob(filepath.Join(home, ".claude/projects/*/*.jsonl"))
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		lines := bufio.NewReaderSize(f, 1<<20)
		for {
			line, err := lines.ReadBytes('\n')
			if err == io.EOF {
				break
			}
			var value any
			if err != nil || json.Unmarshal(line, &value) != nil {
				b.Fatal(path, err)
			}
		}
		f.Close()
	}
}
