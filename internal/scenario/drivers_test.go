package scenario

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// run runs a command and returns what it prints.
func run(t *testing.T, stdin []byte, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "STET_TOKEN="+token)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, stderr.Bytes())
	}
	return out
}

func encode(t *testing.T, request any) []byte {
	t.Helper()
	data, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// curl speaks the Connect protocol with JSON.
type curl struct{ address, headers string }

func withCurl(t *testing.T, address, workspace string) seen {
	testenv.Need(t, "curl")
	headers := filepath.Join(t.TempDir(), "headers") // a token does not belong on a command line
	if err := os.WriteFile(headers, []byte("Authorization: Bearer "+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return drive(t, &curl{address: address, headers: headers}, workspace)
}

func (c *curl) post(t *testing.T, method, contentType string, body []byte) []byte {
	t.Helper()
	return run(t, body, "curl", "--silent", "--show-error", "--fail-with-body", "--header", "@"+c.headers,
		"--header", "Content-Type: "+contentType, "--data-binary", "@-", c.address+"/"+method)
}

func (c *curl) call(t *testing.T, method string, request any) json.RawMessage {
	t.Helper()
	return c.post(t, method, "application/json", encode(t, request))
}

// stream wraps every message: a byte of flags, four of length.
func (c *curl) stream(t *testing.T, method string, request any) []json.RawMessage {
	t.Helper()
	data := encode(t, request)
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(data))), data...)
	answer := c.post(t, method, "application/connect+json", body)
	var out []json.RawMessage
	for len(answer) > 0 {
		if len(answer) < 5 {
			t.Fatalf("the stream breaks off: %q", answer)
		}
		flags, size := answer[0], int(binary.BigEndian.Uint32(answer[1:]))
		if len(answer) < 5+size {
			t.Fatalf("the stream breaks off: %q", answer)
		}
		message := json.RawMessage(answer[5 : 5+size])
		answer = answer[5+size:]
		if flags&2 == 0 {
			out = append(out, message)
		} else if strings.Contains(string(message), `"error"`) {
			t.Fatalf("the stream ends with %s", message)
		}
	}
	return out
}

// grpcurl speaks gRPC and learns the services by reflection.
type grpcurl struct{ path, address string }

func withGRPCurl(t *testing.T, address, workspace string) seen {
	if !testenv.Full() {
		t.Skip("left to make check: grpcurl takes longer to build than everything here to run")
	}
	testenv.Need(t, "grpcurl")
	path := strings.TrimSpace(string(run(t, nil, "../tools/grpcurl.sh")))
	return drive(t, &grpcurl{path: path, address: strings.TrimPrefix(address, "http://")}, workspace)
}

func (g *grpcurl) call(t *testing.T, method string, request any) json.RawMessage {
	t.Helper()
	answers := g.stream(t, method, request)
	if len(answers) != 1 {
		t.Fatalf("%s: %d answers", method, len(answers))
	}
	return answers[0]
}

func (g *grpcurl) stream(t *testing.T, method string, request any) []json.RawMessage {
	t.Helper()
	out := run(t, encode(t, request), g.path, "-plaintext", "-expand-headers", "-H", "Authorization: Bearer ${STET_TOKEN}", "-d", "@", g.address, method)
	var answers []json.RawMessage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var one json.RawMessage
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return answers
		}
		if err != nil {
			t.Fatalf("%s: %v in %q", method, err, out)
		}
		answers = append(answers, one)
	}
}

var buildTypeScript sync.Once

// typescript builds the TypeScript client, once, and returns its directory.
func typescript(t *testing.T) string {
	t.Helper()
	testenv.Need(t, "node", "typescript")
	dir, err := filepath.Abs("../../clients/typescript")
	if err != nil {
		t.Fatal(err)
	}
	buildTypeScript.Do(func() {
		run(t, nil, "../tools/tsc.sh", dir)
	})
	return dir
}

func withTypeScript(t *testing.T, address, workspace string) seen {
	out := run(t, nil, "node", filepath.Join(typescript(t), "dist/examples/scenario.js"), address, workspace)
	var got seen
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return got
}

// The client's own tests, against a running server.
func TestTypeScriptClient(t *testing.T) {
	_, address := start(t)
	t.Setenv("STET_URL", address)
	dir := typescript(t)
	out := run(t, nil, "node", "--test", filepath.Join(dir, "dist/test/client.test.js"))
	if !bytes.Contains(out, []byte("# fail 0")) || bytes.Contains(out, []byte("# pass 0")) {
		t.Errorf("%s", out)
	}
	counted := run(t, nil, "node", filepath.Join(dir, "dist/examples/follow.js"))
	if got, want := string(counted), "1\n2\n3\n4\n5\n"; got != want {
		t.Errorf("the example prints %q, want %q", got, want)
	}
}
