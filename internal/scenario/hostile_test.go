package scenario

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/internal/testenv"
)

// post sends a body as it is and returns the status and the answer.
func post(t testing.TB, address string, m hostile) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", address+m.procedure, bytes.NewReader(m.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", m.kind)
	req.Header.Set("Authorization", "Bearer "+token)
	if m.encoding != "" {
		req.Header.Set("Content-Encoding", m.encoding)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// field writes a length-delimited field.
func field(to []byte, n protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, n, protowire.BytesType), content)
}

// nested writes a request whose state has subagents inside each other.
func nested(t testing.TB, depth int) []byte {
	t.Helper()
	m := (&stetv1.SaveConversationRequest{}).ProtoReflect().Descriptor()
	whole := m.Fields().ByName("structure")
	state := whole.Message()
	subagents := state.Fields().ByName("subagent_states")
	if subagents == nil || !subagents.IsMap() {
		t.Fatal("the state has no map of subagents")
	}
	value := subagents.MapValue().Message()
	var into protowire.Number
	for i := range value.Fields().Len() {
		if f := value.Fields().Get(i); f.Message() != nil && f.Message().FullName() == state.FullName() {
			into = f.Number()
		}
	}
	if into == 0 && value.FullName() != state.FullName() {
		t.Fatalf("%s holds no state", value.FullName())
	}
	var data []byte
	for range depth {
		inner := data
		if into != 0 {
			inner = field(nil, into, data)
		}
		entry := field(field(nil, 1, []byte("s")), 2, inner)
		data = field(nil, subagents.Number(), entry)
	}
	return field(field(nil, m.Fields().ByName("id").Number(), []byte("none")), whole.Number(), data)
}

// hostile is a message that asks for more than it should get, and the status that
// answers it.
type hostile struct {
	name, procedure, kind, encoding string
	body                            []byte
	want                            int
}

func hostileMessages(t testing.TB) []hostile {
	t.Helper()
	const save, has, get = "/stet.v1.ConversationService/Save", "/stet.v1.BlobService/Has", "/stet.v1.BlobService/Get"
	zipped := func(n int) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		if _, err := io.CopyN(w, zeros{}, int64(n)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	const binary, text = "application/proto", "application/json"
	return []hostile{
		{"nothing", has, binary, "", nil, 200},
		{"as much as is allowed", has, binary, "", bytes.Repeat([]byte{0x0a, 0x00}, 90_000), 400}, // ids of no bytes
		{"too many entries", has, binary, "", bytes.Repeat([]byte{0x0a, 0x00}, 150_000), 429},
		{"too many entries, JSON", has, text, "", []byte(`{"ids":[""` + strings.Repeat(`,""`, 300_000) + `]}`), 429},
		{"too many entries for a message, JSON", has, text, "", []byte(`{"ids":["AAAA"` + strings.Repeat(`,"AAAA"`, 150_000) + `]}`), 429},
		{"too large", has, binary, "", make([]byte, 5<<20), 429},
		{"too large, JSON", has, text, "", []byte(`{"x":"` + strings.Repeat("y", 5<<20) + `"}`), 429},
		{"a bomb", has, binary, "gzip", zipped(16 << 20), 429},
		{"deep", save, binary, "", nested(t, 33), 429},
		{"very deep", save, binary, "", nested(t, 3000), 429},
		{"deep, JSON", save, text, "", []byte(strings.Repeat(`{"x":`, 5000) + "1" + strings.Repeat("}", 5000)), 429},
		{"deep lists, JSON", save, text, "", []byte(`{"x":` + strings.Repeat(`[`, 100_000) + strings.Repeat("]", 100_000) + "}"), 429},
		{"no message", get, binary, "", []byte{0xff, 0xff, 0xff, 0xff}, 400},
		{"no JSON", get, text, "", []byte(`{"id"`), 400},
		{"text that is none", "/stet.v1.ConversationService/Get", binary, "", field(nil, 1, []byte{0xff, 0xfe}), 400},
		{"an id of 31 bytes", get, binary, "", field(nil, 1, make([]byte, 31)), 400},
		{"an id of 33 bytes", get, binary, "", field(nil, 1, make([]byte, 33)), 400},
		{"an encoding that there is not", get, binary, "br", []byte{1}, 501},
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// hostileMemory is the most that a server may grow by for one message.
const hostileMemory = 64 << 20

// Each message is sent to a server in a process of its own, so that what it takes
// can be told from what sending it takes.
func TestHostileMessages(t *testing.T) {
	c := spawn(t, t.TempDir())
	t.Cleanup(c.kill)
	// The first request of each kind brings code and tables into memory.
	for _, m := range hostileMessages(t)[:1] {
		post(t, c.address, m)
	}
	for _, m := range hostileMessages(t) {
		t.Run(m.name, func(t *testing.T) {
			before := c.resetPeak(t)
			got, said := post(t, c.address, m)
			if got != m.want {
				t.Errorf("status %d, want %d: %.200s", got, m.want, said)
			}
			grown := c.memory(t, "VmHWM") - before
			t.Logf("%d KiB", grown>>10)
			if grown > hostileMemory && !testenv.Race() {
				t.Errorf("the server grew by %d MiB", grown>>20)
			}
		})
	}
	// The server is well.
	hc, base := dial(t, c.address).HTTP()
	if _, err := stetv1connect.NewStoreServiceClient(hc, base).Info(t.Context(), &stetv1.StoreInfoRequest{}); err != nil {
		t.Error(err)
	}
}

// BenchmarkHostileMessages reports how long the worst of them takes, and how much
// of the processor. Both are to stay below 250 ms.
func BenchmarkHostileMessages(b *testing.B) {
	c := spawn(b, b.TempDir())
	b.Cleanup(c.kill)
	var wall, cpu time.Duration
	for b.Loop() {
		for _, m := range hostileMessages(b) {
			start, used := time.Now(), c.cpu(b)
			post(b, c.address, m)
			wall, cpu = max(wall, time.Since(start)), max(cpu, c.cpu(b)-used)
		}
	}
	b.ReportMetric(float64(wall.Microseconds())/1000, "worst-ms")
	b.ReportMetric(float64(cpu.Milliseconds()), "worst-cpu-ms")
}

// resetPeak makes the kernel forget how much memory the server once had, and
// returns what it has now.
func (c *child) resetPeak(t testing.TB) int64 {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.cmd.Process.Pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	return c.memory(t, "VmRSS")
}

// memory returns a size from the status of the server's process, in bytes.
func (c *child) memory(t testing.TB, name string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("the status has no %s", name)
	return 0
}

// cpu returns the processor time that the server has used.
func (c *child) cpu(t testing.TB) time.Duration {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime, in hundredths
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func TestAsManyNestedAsAllowed(t *testing.T) {
	_, address := start(t)
	m := hostile{procedure: "/stet.v1.ConversationService/Save", kind: "application/proto", body: nested(t, 32)}
	if got, said := post(t, address, m); got != 404 {
		t.Errorf("status %d: %.200s, want no such conversation", got, said)
	}
}
