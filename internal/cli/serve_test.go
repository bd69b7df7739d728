package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/client"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server"
)

// safeBuffer can be read while it is written.
type safeBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// serveHere runs 'stet serve' with arguments and returns the address and a
// function that stops it and returns what it said.
func serveHere(t *testing.T, dir string, args ...string) (string, func() string) {
	t.Helper()
	out, say := io.Pipe()
	errOut := &safeBuffer{}
	a := &app{in: strings.NewReader(""), out: say, err: errOut}
	root := a.root()
	root.SetArgs(append([]string{"serve", "--store", dir, "--json", "--listen", "127.0.0.1:0"}, args...))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		say.CloseWithError(io.EOF)
		ended <- err
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cancel()
		t.Fatalf("serve: %v, %v\n%s", err, <-ended, errOut)
	}
	var said struct{ Schema, Address, Mode string }
	if err := json.Unmarshal([]byte(line), &said); err != nil || said.Schema != "stet.serve.v1" || said.Address == "" {
		t.Fatalf("%s: %v", line, err)
	}
	stop := sync.OnceValue(func() string {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		return errOut.String()
	})
	t.Cleanup(func() { stop() })
	return said.Address, stop
}

func testClient(t *testing.T, address, token string) *client.Client {
	t.Helper()
	c, err := client.New(address, &client.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// here runs a command in this process and returns what it printed and said.
func here(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: &errOut}
	root := a.root()
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

// The demonstration fills new stores only: work of the user's own is not mixed with it.
func TestServeDemoOnAUsedStore(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv(backgroundSetting, "false")
	dir, work := filepath.Join(t.TempDir(), "store"), t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "a"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, said, err := here(t, "--store", dir, "-C", work, "checkpoint"); err != nil {
		t.Fatal(err, said)
	}
	_, stop := serveHere(t, dir, "--demo")
	if said := stop(); !strings.Contains(said, "no demonstration: the store at "+dir+" is not empty") {
		t.Errorf("serve said %q", said)
	}
	if list, _, err := here(t, "--store", dir, "ls"); err != nil || list != "" {
		t.Errorf("the store has %q, %v", list, err)
	}
	fresh := filepath.Join(t.TempDir(), "fresh")
	_, stop = serveHere(t, fresh, "--demo")
	if said := stop(); strings.Contains(said, "no demonstration") {
		t.Errorf("serve said %q", said)
	}
	if list, _, err := here(t, "--store", fresh, "ls"); err != nil || !strings.Contains(list, "add retry to") {
		t.Errorf("the new store has %q, %v", list, err)
	}
}

// The example of 'stet serve --help' works: the server of the same user on the same machine
// needs no token from the command line.
func TestOwnServerNeedsNoToken(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv(backgroundSetting, "false")
	t.Setenv("STET_TOKEN", "")
	dir := filepath.Join(t.TempDir(), "store")
	address, _ := serveHere(t, dir, "--demo")
	t.Setenv("STET_STORE", dir)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		list, said, err := here(t, "--store", strings.Replace(address, "127.0.0.1", host, 1), "ls")
		if err != nil || !strings.Contains(list, "add retry to") {
			t.Errorf("%s: %q, %q, %v", host, list, said, err)
		}
	}
	t.Setenv("STET_STORE", t.TempDir())
	if _, _, err := here(t, "--store", address, "ls"); err == nil {
		t.Error("the server let in a caller without its token")
	}
}

func TestServeTenants(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	tokens := access.OpenTokens(filepath.Join(dir, access.TokensName))
	token, info, err := tokens.Create(access.Grant{Tenant: "shop", Scope: access.Write})
	if err != nil {
		t.Fatal(err)
	}
	address, stop := serveHere(t, dir, "--mode", "server", "--log=text", "--quota-bytes", "1MiB")
	c := testClient(t, address, token)
	if err := c.Blobs().Put(t.Context(), blob.New([]byte("hello"))); err != nil {
		t.Fatal(err)
	}
	err = c.Blobs().Put(t.Context(), blob.New(bytes.Repeat([]byte("x"), 2<<20)))
	if connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("more than the quota: %v", err)
	}
	hc, base := c.HTTP()
	conversations := stetv1connect.NewConversationServiceClient(hc, base)
	if _, err := conversations.Create(t.Context(), &stetv1.CreateConversationRequest{Id: "c1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := conversations.Delete(t.Context(), &stetv1.DeleteConversationRequest{Id: "c1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Revoke(info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Blobs().Has(t.Context(), blob.ID{}); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("a revoked token: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, access.TokensName), []byte("{damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(address + "/readyz") // the first look
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(res.Body)
	res.Body.Close()
	if want := "the store cannot be read: the tokens cannot be read\n"; err != nil || res.StatusCode != http.StatusServiceUnavailable || string(said) != want {
		t.Errorf("ready with damaged tokens: %d %q, %v", res.StatusCode, said, err)
	}
	log := stop()
	for _, want := range []string{"path=" + stetv1connect.BlobServicePutProcedure, "tenant=shop", "token=" + info.ID, "code=resource_exhausted"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
	if strings.Contains(log, token[len(token)-20:]) {
		t.Error("the log holds a token")
	}
	if _, err := os.Stat(filepath.Join(dir, server.TenantsName, "shop", "stet.db")); err != nil {
		t.Error(err)
	}
	audit, err := os.ReadFile(filepath.Join(dir, access.AuditName))
	if err != nil || bytes.Count(audit, []byte("ConversationService/Delete")) != 2 {
		t.Errorf("the audit log has\n%s%v", audit, err)
	}
}

// Traces are sent where the environment says, in OpenTelemetry's own protocol.
func TestServeSendsTraces(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	got := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/v1/traces" && r.Header.Get("Content-Type") == "application/x-protobuf" {
			got <- body
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	dir := t.TempDir()
	address, stop := serveHere(t, dir)
	token, err := os.ReadFile(filepath.Join(dir, server.TokenName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := testClient(t, address, strings.TrimSpace(string(token))).Blobs().Has(t.Context(), blob.ID{}); err != nil {
		t.Fatal(err)
	}
	stop() // sends the rest
	body := <-got
	for _, want := range []string{"stet.v1.BlobService/Has", "service.name"} {
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("the trace has no %s", want)
		}
	}
	if bytes.Contains(body, bytes.TrimSpace(token)) {
		t.Error("the trace holds the token")
	}
}
