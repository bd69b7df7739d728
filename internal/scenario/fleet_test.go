package scenario

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/client"
	stetfleet "github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
)

// site is a database and a bucket that several nodes share.
type site struct {
	config stetfleet.Config
	s3     *realservers.S3Server
	token  string // of an administrator of the tenant "shop"
	home   string
}

// newSite prepares an empty database and bucket, and a token.
func newSite(t testing.TB, database string, s3 *realservers.S3Server) *site {
	t.Helper()
	access1, secret := s3.Keys()
	t.Setenv("AWS_ACCESS_KEY_ID", access1)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	s := &site{config: stetfleet.Config{Database: database, Blobs: s3.URL(s3.NewBucket(t))}, s3: s3, home: t.TempDir()}
	f := s.open(t)
	token, _, err := f.Tokens().Create(access.Grant{Tenant: "shop", Scope: access.Admin})
	if err != nil {
		t.Fatal(err)
	}
	s.token = token
	return s
}

// open is a node inside the test, which looks at everything directly.
func (s *site) open(t testing.TB) *stetfleet.Fleet {
	t.Helper()
	f, err := stetfleet.Open(t.Context(), s.config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// shop opens the tenant's store directly.
func (s *site) shop(t testing.TB) *stet.DB {
	t.Helper()
	db, err := s.open(t).Open(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// node is a server process.
type node struct {
	address string // host:port
	cmd     *exec.Cmd
}

// start runs 'stet serve' and waits until it listens.
func (s *site) start(t testing.TB, args ...string) *node {
	t.Helper()
	return s.startLogged(t, os.Stderr, args...)
}

func (s *site) startLogged(t testing.TB, log io.Writer, args ...string) *node {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"serve", "--mode", "server", "--json", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), s.env()...)
	cmd.Stderr = log
	testenv.EndWithTests(cmd, syscall.SIGKILL)
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	var said struct{ Address string }
	if err == nil {
		err = json.Unmarshal([]byte(line), &said)
	}
	if err != nil {
		t.Fatalf("the node did not start: %v", err)
	}
	return &node{address: strings.TrimPrefix(said.Address, "http://"), cmd: cmd}
}

// env is the environment of a command with this store.
func (s *site) env() []string {
	return []string{
		asCommand + "=1", "STET_STORE=" + s.config.Database, "STET_BLOBS=" + s.config.Blobs,
		"HOME=" + s.home, "XDG_CONFIG_HOME=" + s.home, "XDG_STATE_HOME=" + s.home, "XDG_DATA_HOME=" + s.home,
	}
}

// command runs a verb as a process of its own.
func (s *site) command(t testing.TB, env []string, args ...string) (code int, out string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(append(os.Environ(), s.env()...), env...)
	data, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(data)
}

func (n *node) kill() {
	_ = n.cmd.Process.Kill() // SIGKILL; it may be gone already
	_ = n.cmd.Wait()         // says that it was killed
}

// nodes are several servers of one site.
type nodes struct {
	site *site
	mu   sync.Mutex // guards all
	all  []*node
}

func (s *site) startNodes(t testing.TB, n int) *nodes {
	t.Helper()
	all := &nodes{site: s}
	for range n {
		all.all = append(all.all, s.start(t))
	}
	t.Cleanup(func() {
		for _, one := range all.all {
			one.kill()
		}
	})
	return all
}

// replace kills a node and starts another one in its place.
func (n *nodes) replace(t testing.TB, i int) {
	t.Helper()
	n.mu.Lock()
	old := n.all[i]
	n.mu.Unlock()
	old.kill()
	fresh := n.site.start(t)
	n.mu.Lock()
	n.all[i] = fresh
	n.mu.Unlock()
}

func (n *nodes) address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[rand.IntN(len(n.all))].address
}

// client returns a client behind a balancer: each of its connections goes to any
// of the nodes.
func (n *nodes) client(t testing.TB) *client.Client {
	t.Helper()
	c, err := n.newClient()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (n *nodes) newClient() (*client.Client, error) {
	transport := &http.Transport{
		Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", n.address())
		},
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return client.New("http://localhost:1", &client.Options{Token: n.site.token, HTTPClient: &http.Client{Transport: transport}})
}

// get asks a node for a page that needs no token.
func (n *node) get(t testing.TB, path string) (int, string) {
	t.Helper()
	hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := hc.Get("http://" + n.address + path)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// multiHost is the address of a database on two servers, of which one takes writes.
func multiHost(primary, standby *realservers.PostgresServer, database string) string {
	return fmt.Sprintf("postgres://stet@%s,%s/%s?sslmode=disable&target_session_attrs=read-write", primary.Addr(), standby.Addr(), database)
}
