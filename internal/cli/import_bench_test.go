//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkImport compares the import of generated sessions with reading and decoding
// their bytes. STET_IMPORT_MB is their size in MB; the default is 64. Half of it is one
// session. The peak is that of the whole process, and over-MiB what it has more than one
// that lists an empty store.
func BenchmarkImport(b *testing.B) {
	size := 64
	if n, err := strconv.Atoi(os.Getenv("STET_IMPORT_MB")); err == nil {
		size = n
	}
	stet := buildProgram(b, "../../cmd/stet")
	for agent, write := range map[string]func(testing.TB, string, int){"claude-code": writeClaudeCode, "codex": writeCodex} {
		b.Run(agent, func(b *testing.B) {
			home := b.TempDir()
			write(b, home, size)
			benchImport(b, stet, agent, home, size)
		})
	}
}

func benchImport(b *testing.B, stet, agent, home string, size int) {
	env := append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "CODEX_HOME=", backgroundSetting+"=false")
	dir := b.TempDir()
	run := func(args ...string) (took time.Duration, memory float64) {
		cmd := exec.Command(stet, args...)
		cmd.Env, cmd.Dir = env, dir
		began := time.Now()
		bytes, out, err := runPeak(cmd)
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		return time.Since(began), float64(bytes) / (1 << 20)
	}
	var ours, plain time.Duration
	most, least := 0.0, 0.0
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		decodeLines(b, home)
		plain += time.Since(began)
		store := filepath.Join(b.TempDir(), "store"+strconv.Itoa(n))
		run("--store", store, "init")
		_, least = run("--store", store, "ls")
		took, memory := run("--store", store, "import", "--from", agent, "-y", "-q")
		ours, most = ours+took, max(most, memory)
	}
	mb := float64(size * b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(mb/ours.Seconds(), "MB/s")
	b.ReportMetric(mb/plain.Seconds(), "decode-MB/s")
	b.ReportMetric(plain.Seconds()/ours.Seconds(), "ratio")
	b.ReportMetric(most, "peak-MiB")
	b.ReportMetric(most-least, "over-MiB")
}

// writer writes the lines of a generated session.
type writer struct {
	tb     testing.TB
	random *rand.Rand
	out    *bufio.Writer
	size   int
}

var benchWords = strings.Fields("the order cart price of a customer is in stock and func return if err nil test line file diff index total sum for range key value")

// text returns words with about n bytes.
func (w *writer) text(n int) string {
	var s strings.Builder
	for s.Len() < n {
		fmt.Fprintf(&s, "%s %d", benchWords[w.random.IntN(len(benchWords))], w.random.IntN(1000))
		s.WriteByte(" \n"[w.random.IntN(8)/7])
	}
	return s.String()
}

// output is the output of a tool: most are small, some are a whole file.
func (w *writer) output() string {
	if w.random.IntN(40) == 0 {
		return w.text(100_000)
	}
	return w.text(200 + w.random.IntN(8000))
}

func (w *writer) line(value any) {
	data, err := json.Marshal(value)
	if err != nil {
		w.tb.Fatal(err)
	}
	w.out.Write(append(data, '\n')) // Flush reports errors
	w.size += len(data) + 1
}

// writeEach writes sessions until they have some megabytes: one with half of them, and
// others of different sizes. session writes one.
func writeEach(tb testing.TB, mb int, path func(n int) string, session func(w *writer, n, size int)) {
	tb.Helper()
	random := rand.New(rand.NewPCG(1, 2026))
	for left, n := mb<<20, 0; left > 0; n++ {
		size := min(left, 200<<10<<random.IntN(6))
		if n == 0 {
			size = left / 2
		}
		if err := os.MkdirAll(filepath.Dir(path(n)), 0o755); err != nil {
			tb.Fatal(err)
		}
		f, err := os.Create(path(n))
		if err != nil {
			tb.Fatal(err)
		}
		w := &writer{tb: tb, random: random, out: bufio.NewWriter(f)}
		session(w, n, size)
		if err := w.out.Flush(); err != nil {
			tb.Fatal(err)
		}
		if err := f.Close(); err != nil {
			tb.Fatal(err)
		}
		left -= w.size
	}
}

func benchTime(n, turn int) string {
	return time.Date(2026, 11, 1+n%28, 8, turn/60, turn%60, 0, time.UTC).Format(time.RFC3339)
}

type fields = map[string]any

// writeClaudeCode writes sessions of Claude Code.
func writeClaudeCode(tb testing.TB, home string, mb int) {
	id := func(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }
	writeEach(tb, mb, func(n int) string {
		return filepath.Join(home, ".claude", "projects", "-src-shop", id(n)+".jsonl")
	}, func(w *writer, n, size int) {
		var parent any
		turn := 0
		line := func(kind, uuid string, message fields) {
			uuid = id(n) + uuid
			w.line(fields{"type": kind, "uuid": uuid, "parentUuid": parent, "promptId": fmt.Sprint("p", turn), "cwd": "/src/shop",
				"sessionId": id(n), "timestamp": benchTime(n, turn), "message": message})
			parent = uuid
		}
		for ; w.size < size; turn++ {
			line("user", fmt.Sprint("u", turn), fields{"role": "user", "content": w.text(200)})
			for call := range 1 + w.random.IntN(8) {
				use := fmt.Sprintf("toolu_%d_%d", turn, call)
				line("assistant", "a"+use, fields{"id": "m" + use, "role": "assistant", "model": "m", "content": []fields{
					{"type": "tool_use", "id": use, "name": "Write", "input": fields{"file_path": "/src/shop/a.go", "content": w.text(1500)}}}})
				line("user", "r"+use, fields{"role": "user", "content": []fields{{"type": "tool_result", "tool_use_id": use, "content": w.output()}}})
			}
			line("assistant", fmt.Sprint("e", turn), fields{"id": fmt.Sprint("e", turn), "role": "assistant", "model": "m", "stop_reason": "end_turn",
				"content": []fields{{"type": "text", "text": w.text(800)}}, "usage": fields{"input_tokens": 10, "output_tokens": 200}})
		}
	})
}

// writeCodex writes rollouts of Codex.
func writeCodex(tb testing.TB, home string, mb int) {
	id := func(n int) string { return fmt.Sprintf("%08d-0000-7000-8000-000000000000", n) }
	writeEach(tb, mb, func(n int) string {
		at := fmt.Sprintf("2026-11-%02dT08-00-%02d", 1+n%28, n/28%60)
		return filepath.Join(home, ".codex", "sessions", "2026", "11", "01", "rollout-"+at+"-"+id(n)+".jsonl")
	}, func(w *writer, n, size int) {
		turn := 0
		line := func(kind string, payload fields) {
			w.line(fields{"timestamp": benchTime(n, turn), "type": kind, "payload": payload})
		}
		line("session_meta", fields{"id": id(n), "timestamp": benchTime(n, 0), "cwd": "/src/shop", "originator": "codex_cli", "cli_version": "1"})
		for ; w.size < size; turn++ {
			name := fmt.Sprint("turn", turn)
			line("event_msg", fields{"type": "task_started", "turn_id": name})
			line("turn_context", fields{"cwd": "/src/shop", "model": "m"})
			prompt, reply := w.text(200), w.text(800)
			line("response_item", fields{"type": "message", "role": "user", "content": []fields{{"type": "input_text", "text": prompt}}})
			line("event_msg", fields{"type": "user_message", "message": prompt})
			for call := range 1 + w.random.IntN(8) {
				use := fmt.Sprintf("call_%d_%d", turn, call)
				arguments, _ := json.Marshal(fields{"cmd": w.text(600)}) // strings always have a form
				line("response_item", fields{"type": "function_call", "name": "exec_command", "arguments": string(arguments), "call_id": use})
				line("response_item", fields{"type": "function_call_output", "call_id": use, "output": "Exit code: 0\nOutput:\n" + w.output()})
				line("event_msg", fields{"type": "token_count", "info": fields{"total_token_usage": fields{"total_tokens": 100 * w.size}, "last_token_usage": fields{"input_tokens": 10}}})
			}
			line("response_item", fields{"type": "message", "role": "assistant", "content": []fields{{"type": "output_text", "text": reply}}})
			line("event_msg", fields{"type": "agent_message", "message": reply})
			line("event_msg", fields{"type": "task_complete", "turn_id": name, "last_agent_message": reply})
		}
	})
}

// decodeLines reads every line below a directory as a JSON value.
func decodeLines(b *testing.B, dir string) {
	b.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".jsonl" {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		for lines := bufio.NewReaderSize(f, 1<<20); ; {
			line, err := lines.ReadBytes('\n')
			if err == io.EOF {
				return nil
			}
			var value any
			if err != nil || json.Unmarshal(line, &value) != nil {
				return fmt.Errorf("%s: %v", path, err)
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
}
