package scenario

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/client"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
)

// laptop is a machine with a store of its own, whose commands are processes.
type laptop struct {
	t    *testing.T
	dir  string // with the store and the home in it
	more []string
}

func newLaptop(t *testing.T, env ...string) *laptop {
	t.Helper()
	l := &laptop{t: t, dir: t.TempDir(), more: env}
	for _, name := range []string{"home", "work"} {
		if err := os.Mkdir(filepath.Join(l.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *laptop) cmd(args ...string) *exec.Cmd {
	l.t.Helper()
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	home := filepath.Join(l.dir, "home")
	cmd.Env = append(os.Environ(), asCommand+"=1", "STET_STORE="+filepath.Join(l.dir, "store"),
		"HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_DATA_HOME="+home)
	cmd.Env = append(cmd.Env, l.more...)
	cmd.Dir = filepath.Join(l.dir, "work")
	testenv.EndWithTests(cmd, syscall.SIGKILL)
	return cmd
}

// run runs a command, which must end with a code, and returns what it printed and said.
func (l *laptop) run(code int, args ...string) (out, said string) {
	l.t.Helper()
	cmd := l.cmd(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		l.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		l.t.Fatalf("stet %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, &stdout, &stderr)
	}
	return strings.TrimSpace(stdout.String()), stderr.String()
}

// put stores a text and returns its id.
func (l *laptop) put(text string) (id, said string) {
	l.t.Helper()
	path := filepath.Join(l.dir, "work", "note")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return l.run(0, "blob", "put", path)
}

// waiting is the backlog by status.
func (l *laptop) waiting() (n int64, why string) {
	l.t.Helper()
	out, _ := l.run(0, "status", "--json")
	var status struct {
		Remote *struct {
			URL     string
			Waiting int64
			Error   string
		}
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil || status.Remote == nil {
		l.t.Fatalf("status without a remote: %v\n%s", err, out)
	}
	return status.Remote.Waiting, status.Remote.Error
}

// serve starts 'stet serve' and returns its address.
func (l *laptop) serve(listen string, args ...string) (address string, kill func()) {
	l.t.Helper()
	cmd := l.cmd(append([]string{"serve", "--json", "--listen", listen}, args...)...)
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // says that it was killed
		}
	}
	l.t.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	var said struct{ Address string }
	if err == nil {
		err = json.Unmarshal([]byte(line), &said)
	}
	if err != nil {
		l.t.Fatalf("the server did not start: %v", err)
	}
	return said.Address, kill
}

// TestServerAsRemote copies the blobs of a machine to a server that comes and goes.
func TestServerAsRemote(t *testing.T) {
	host := newLaptop(t)
	address, kill := host.serve("127.0.0.1:0")
	tokenFile := filepath.Join(host.dir, "store", "token")
	env := []string{"STET_REMOTE_URL=" + address, "STET_REMOTE_TOKEN_FILE=" + tokenFile}
	l := newLaptop(t, env...)

	first, said := l.put("first")
	if said != "" {
		t.Errorf("put with a remote: %s", said)
	}
	if n, why := l.waiting(); n != 0 || why != "" {
		t.Errorf("%d blobs wait: %s", n, why)
	}
	kill()

	second, said := l.put("second")
	if !strings.Contains(said, " for "+address) {
		t.Errorf("put while the remote is away does not say that a blob waits: %q", said)
	}
	if n, why := l.waiting(); n == 0 || why == "" {
		t.Errorf("while the remote is away %d blobs wait: %q", n, why)
	}
	if _, said := l.run(8, "flush"); !strings.Contains(said, "wait") {
		t.Errorf("flush while the remote is away: %s", said)
	}
	l.run(8, "blob", "get", strings.Repeat("7", 64)) // nobody knows whether it is there
	out, _ := l.run(0, "blob", "get", second)
	if out != "second" {
		t.Errorf("got %q", out)
	}

	// The collector of the server keeps what nothing there refers to.
	host.run(0, "gc", "--grace", "0s")
	_, kill = host.serve(strings.TrimPrefix(address, "http://"))
	l.run(0, "ls") // any command sends what waits
	if n, why := l.waiting(); n != 0 {
		t.Errorf("with the remote back %d blobs wait: %s", n, why)
	}
	fresh := newLaptop(t, env...)
	fresh.run(0, "init")
	for id, want := range map[string]string{first: "first", second: "second"} {
		if got, _ := fresh.run(0, "blob", "get", id); got != want {
			t.Errorf("on a new machine: got %q, want %q", got, want)
		}
	}
	fresh.run(3, "blob", "get", strings.Repeat("7", 64))
	kill()
	if got, _ := fresh.run(0, "blob", "get", first); got != "first" {
		t.Errorf("what was fetched is not kept: %q", got)
	}
}

// TestRemoteThatRefuses has a wrong token, one that may only read, and one that may
// write.
func TestRemoteThatRefuses(t *testing.T) {
	host := newLaptop(t)
	tokens := make(map[string]string)
	for _, scope := range []string{"read", "write"} {
		out, _ := host.run(0, "tokens", "create", "shop", "--scope", scope, "--json")
		var made struct{ Token string }
		if err := json.Unmarshal([]byte(out), &made); err != nil {
			t.Fatal(err)
		}
		tokens[scope] = made.Token
	}
	tokens["wrong"] = strings.Repeat("0", 40)
	address, _ := host.serve("127.0.0.1:0", "--mode", "server")
	file := filepath.Join(host.dir, "remote-token")
	l := newLaptop(t, "STET_REMOTE_URL="+address, "STET_REMOTE_TOKEN_FILE="+file)
	use := func(scope string) {
		if err := os.WriteFile(file, []byte(tokens[scope]+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, scope := range []string{"wrong", "read"} {
		use(scope)
		if _, said := l.put("put with the token " + scope); !strings.Contains(said, "for "+address) {
			t.Errorf("%s: put does not say that blobs wait: %q", scope, said)
		}
		if n, why := l.waiting(); n == 0 || why == "" {
			t.Errorf("%s: %d blobs wait: %q", scope, n, why)
		}
		if _, said := l.run(1, "flush"); !strings.Contains(said, "send to "+address) {
			t.Errorf("%s: flush: %q", scope, said)
		}
	}
	use("write")
	if out, _ := l.run(0, "flush"); !strings.Contains(out, "is up to date; sent ") {
		t.Errorf("flush with a token that may write: %s", out)
	}
	if n, _ := l.waiting(); n != 0 {
		t.Errorf("%d blobs wait", n)
	}
}

// TestEncryptedStoreAndPlainServer sends nothing readable without permission.
func TestEncryptedStoreAndPlainServer(t *testing.T) {
	host := newLaptop(t)
	address, _ := host.serve("127.0.0.1:0")
	l := newLaptop(t, "STET_REMOTE_URL="+address, "STET_REMOTE_TOKEN_FILE="+filepath.Join(host.dir, "store", "token"))
	l.run(0, "keys", "init")
	id, said := l.put("attack at dawn")
	if !strings.Contains(said, "remote.decrypt") {
		t.Errorf("put: %q", said)
	}
	l.run(4, "flush")
	host.run(3, "blob", "get", id)
	l.run(0, "config", "set", "remote.decrypt", "true")
	l.run(0, "flush")
	host.run(0, "blob", "get", id)
}

// TestBucketAsRemote copies an encrypted store to a bucket, which sees no content and
// no names, and reads it back on a new machine with the same keys.
func TestBucketAsRemote(t *testing.T) {
	s3 := realservers.S3(t)
	bucket := s3.NewBucket(t)
	env := append(s3.Env(), "STET_REMOTE_URL="+s3.URL(bucket))
	l := newLaptop(t, env...)
	l.run(0, "keys", "init", "--key-file", filepath.Join(l.dir, "key"))
	l.more = append(l.more, "STET_KEY_FILE="+filepath.Join(l.dir, "key"))
	id, said := l.put("attack at dawn")
	if strings.Contains(said, "wait") {
		t.Errorf("put: %s", said)
	}
	objects := 0
	err := filepath.WalkDir(s3.Files(bucket), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("attack")) || strings.Contains(path, id) {
			t.Errorf("%s shows content or a name", path)
		}
		if strings.Contains(path, "/blobs/") {
			objects++
		}
		return err
	})
	if err != nil || objects == 0 {
		t.Errorf("%d objects, %v", objects, err)
	}

	fresh := newLaptop(t, env...)
	fresh.run(0, "init") // empty
	fresh.more = l.more
	keys, err := os.ReadFile(filepath.Join(l.dir, "store", "keys.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(fresh.dir, "store", "keys.json"), keys, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := fresh.run(0, "blob", "get", id); got != "attack at dawn" {
		t.Errorf("on a new machine: got %q", got)
	}
}

// TestMetricsOfAStackWithARemote reads every series that the layers of a server promise,
// from a server that has all of them.
func TestMetricsOfAStackWithARemote(t *testing.T) {
	s3 := realservers.S3(t)
	host := newLaptop(t, append(s3.Env(), "STET_REMOTE_URL="+s3.URL(s3.NewBucket(t)))...)
	host.run(0, "keys", "init")
	address, _ := host.serve("127.0.0.1:0")
	tokenFile := filepath.Join(host.dir, "store", "token")
	user := newLaptop(t, "STET_TOKEN_FILE="+tokenFile)
	user.more = append(user.more, "STET_STORE="+address)
	id, _ := user.put("measured")
	user.run(0, "blob", "get", id)
	data, err := os.ReadFile(tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(data))
	readAbsentState(t, address, secret)
	missing := absentSeries(t, address, secret)
	for polls := 0; len(missing) > 0 && polls < 600; polls++ { // the server sends in the background
		time.Sleep(50 * time.Millisecond)
		missing = absentSeries(t, address, secret)
	}
	if len(missing) > 0 {
		t.Errorf("the server does not report %s", strings.Join(missing, ", "))
	}
}

// readAbsentState makes the server look for a state in its store and at its remote.
func readAbsentState(t *testing.T, address, secret string) {
	t.Helper()
	c, err := client.New(address, &client.Options{Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Conversations().Create(t.Context(), &stetv1.CreateConversationRequest{Id: "c"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Conversations().Save(t.Context(), &stetv1.SaveConversationRequest{
		Id: "c", State: &stetv1.SaveConversationRequest_Root{Root: blob.Sum([]byte("nowhere")).Bytes()},
	})
	if err == nil {
		t.Error("a root that nobody has was saved")
	}
}

// series are the names of the metrics of a server with all layers.
var series = []string{
	"agent_kv_cached_get_blob_duration_ms", "agent_kv_cached_set_blob_duration_ms", "agent_kv_cached_flush_duration_ms",
	"agent_kv_cached_get_blob_results_total", "agent_kv_cached_errors_total",
	"agent_kv_encrypted_get_blob_duration_ms", "agent_kv_encrypted_set_blob_duration_ms", "agent_kv_encrypted_flush_duration_ms",
	"agent_kv_writethrough_get_blob_duration_ms", "agent_kv_writethrough_set_blob_duration_ms", "agent_kv_writethrough_flush_duration_ms",
	"agent_kv_retry_get_blob_duration_ms", "agent_kv_retry_set_blob_duration_ms", "agent_kv_retry_flush_duration_ms",
	"agent_kv_remote_get_blob_duration_ms", "agent_kv_remote_set_blob_duration_ms", "agent_kv_remote_flush_duration_ms",
	"stet_remote_waiting_blobs", "stet_remote_waiting_bytes", "stet_remote_failing",
	"go_goroutines", "go_memstats_alloc_bytes", "process_cpu_seconds_total", "process_open_fds", "process_resident_memory_bytes",
}

func absentSeries(t *testing.T, address, token string) (missing []string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", res.Status, err)
	}
	for _, name := range series {
		if !bytes.Contains(text, []byte("\n# TYPE "+name+" ")) {
			missing = append(missing, name)
		}
	}
	return missing
}
