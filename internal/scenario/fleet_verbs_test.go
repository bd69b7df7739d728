package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/conversation"
	anyrunv1 "github.com/stet-dev/stet/gen/anyrun/v1"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/upkeep"
)

// Verbs work with a store in a database as they do with one on this machine.
func TestVerbsWithAStoreInADatabase(t *testing.T) {
	s := newSite(t, realservers.Postgres(t, realservers.PostgresOptions{}).NewDatabase(t), realservers.S3(t))
	for _, variable := range s.env() {
		if name, value, _ := strings.Cut(variable, "="); name != asCommand {
			t.Setenv(name, value)
		}
	}
	d := &desk{t: t, store: s.config.Database, workspace: mkdir(t)}
	d.stet(0, "init")
	d.write("a.txt", "one\n")
	first := d.stet(0, "checkpoint", "-m", "first")
	d.write("a.txt", "two\n")
	if out := d.stet(0, "diff", first); !strings.Contains(out, "+two") {
		t.Errorf("diff: %s", out)
	}
	d.stet(0, "rewind", first, "--files", "--exact", "-y")
	d.holds("a.txt", "one\n")
	d.stet(0, "undo")
	d.holds("a.txt", "two\n")
	d.stet(0, "run", "--", "sh", "-c", "echo run > run.txt")
	if out := d.stet(0, "import", filepath.Join("..", "..", "foreign", "cursor", "testdata", "state.vscdb")); !strings.Contains(out, "imported 2 conversations") {
		t.Errorf("import: %s", out)
	}
	var listed struct{ ID string }
	first, _, _ = strings.Cut(d.stet(0, "ls", "--json"), "\n")
	if err := json.Unmarshal([]byte(first), &listed); err != nil || listed.ID == "" {
		t.Fatalf("ls: %s, %v", first, err)
	}
	talk := listed.ID
	for _, verb := range []string{
		"status", "ls", "log", "op log", "show " + talk, "export " + talk + " --format md", "search a", "state show " + talk, "blob ls", "fsck --read-data", "du",
		"gc --dry-run --grace 0s", "gc --grace 0s", "archive " + talk, "archive --list", "show " + talk, "unarchive " + talk, "fork " + talk,
		"fleet tenants", "fleet epoch", "fleet epoch --next", "fleet house --pause 1h", "fleet house --resume", "fleet search archived", "fleet search on", "fleet search", strings.Join(doctor(), " "), "config explain", "fsck --read-data",
	} {
		if out := d.stet(0, strings.Fields(verb)...); out == "" && !strings.HasPrefix(verb, "unarchive") {
			t.Errorf("stet %s prints nothing", verb)
		}
	}
	if out := d.stet(0, "tokens", "create", "lab", "--scope", "read"); !strings.HasPrefix(out, "stet_") {
		t.Errorf("tokens create: %s", out)
	}
	if out := d.stet(0, "tokens", "list"); strings.Count(out, "\n") != 1 {
		t.Errorf("tokens list: %s", out)
	}
	d.stet(0, "audit")

	// Down to a directory and to another tenant.
	local := &desk{t: t, store: filepath.Join(t.TempDir(), "store"), workspace: d.workspace}
	if out := local.stet(0, "pull", d.store); !strings.Contains(out, "created") {
		t.Errorf("pull: %s", out)
	}
	if out := local.stet(0, "push", d.store); strings.Contains(out, "created") {
		t.Errorf("push: %s", out)
	}
	t.Setenv("STET_TENANT", "lab")
	if out := d.stet(0, "ls"); out != "" {
		t.Errorf("another tenant: %s", out)
	}
	d.stet(2, "--store", local.store, "--blobs", s.config.Blobs, "ls")
	d.stet(2, "--store", local.store, "fleet", "tenants")
}

// An encrypted store in a database: a keyring on the node, nothing readable below.
func TestVerbsWithAnEncryptedStoreInADatabase(t *testing.T) {
	testenv.OnlyFull(t)
	s := newSite(t, realservers.Postgres(t, realservers.PostgresOptions{}).NewDatabase(t), realservers.S3(t))
	keys := []string{"STET_KEYRING=" + filepath.Join(t.TempDir(), "keys.json"), "STET_PASSPHRASE=open sesame, and more"}
	s.config.Database = realservers.Postgres(t, realservers.PostgresOptions{}).NewDatabase(t) // without a token
	work := mkdir(t)
	do := func(code int, env []string, args ...string) string {
		t.Helper()
		got, out := s.command(t, env, append([]string{"-C", work}, args...)...)
		if got != code {
			t.Errorf("stet %q: exit %d, want %d\n%s", args, got, code, out)
		}
		return out
	}
	do(2, nil, "keys", "init", "--passphrase")
	do(0, keys, "keys", "init", "--passphrase")
	do(4, keys, "keys", "init", "--passphrase")
	if err := os.WriteFile(filepath.Join(work, "a.txt"), []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	do(0, keys, "checkpoint", "-m", "first")
	if out := do(0, keys, "status"); !strings.Contains(out, "encrypted") {
		t.Errorf("status: %s", out)
	}
	do(0, keys, "keys", "list")
	do(0, keys, "keys", "rotate", "--reencrypt")
	do(0, keys, "fsck", "--read-data")
	do(1, append(keys, "STET_PASSPHRASE=another one, and more"), "ls")
	do(4, []string{"STET_KEYRING=" + filepath.Join(t.TempDir(), "keys.json"), "STET_PASSPHRASE=open sesame, and more"}, "keys", "init", "--passphrase")
}

// A migration that is killed goes on where it was, and then all is there.
func TestMigrateSurvivesKills(t *testing.T) {
	s := newSite(t, realservers.Postgres(t, realservers.PostgresOptions{}).NewDatabase(t), realservers.S3(t))
	dir := filepath.Join(t.TempDir(), "store")
	root := fillStore(t, dir, 600)
	run := func() *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), self, "migrate", "--from", dir, "--to", s.config.Database)
		cmd.Env, cmd.Stderr = append(os.Environ(), s.env()...), os.Stderr
		testenv.EndWithTests(cmd, syscall.SIGKILL)
		return cmd
	}
	pool := s.open(t).Postgres().Pool()
	for kill := range 3 {
		cmd := run()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for there := 0; there < 150*(kill+1); {
			if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM stet.blobs WHERE tenant = 'default'").Scan(&there); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				t.Fatalf("it ended before it was killed: %v", err)
			default:
			}
		}
		_ = cmd.Process.Kill() // SIGKILL
		<-ended
		if code, out := s.command(t, nil, "ls"); code != 4 || !strings.Contains(out, "stet migrate") {
			t.Errorf("half of a store: exit %d\n%s", code, out)
		}
	}
	if out, err := run().Output(); err != nil || !strings.Contains(string(out), "all verified") {
		t.Fatalf("%v\n%s", err, out)
	}
	db, err := s.open(t).Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if info, err := db.Conversations().Get(t.Context(), "talk"); err != nil || info.Root != root {
		t.Errorf("moved: %+v, %v", info, err)
	}
	report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
	if err != nil || !report.OK() || report.Orphans != 600 {
		t.Errorf("check: %+v, %v", report, err)
	}
	if code, out := s.command(t, nil, "migrate", "--from", dir, "--to", s.config.Database); code != 4 {
		t.Errorf("again: exit %d\n%s", code, out)
	}
}

// fillStore makes an embedded store with a conversation and many blobs.
func fillStore(t *testing.T, dir string, blobs int) blob.ID {
	t.Helper()
	db, err := stet.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	talk, err := db.Conversations().Create(t.Context(), conversation.Info{ID: "talk"})
	for range 10 {
		if err == nil {
			err = saveOne(t.Context(), talk)
		}
	}
	for range blobs {
		if err == nil {
			err = db.Blobs().Put(t.Context(), blob.New(fmt.Appendf(nil, "%x %x", rand.Uint64(), rand.Uint64())))
		}
	}
	if err := errors.Join(err, db.Compact(t.Context(), nil), db.Close()); err != nil {
		t.Fatal(err)
	}
	return talk.Head().Root
}

// Nodes say whether they can work, why not, and that they live in any case.
func TestReadinessFollowsTheBackends(t *testing.T) {
	testenv.OnlyFull(t)
	server := realservers.Postgres(t, realservers.PostgresOptions{Own: true})
	s := newSite(t, server.NewDatabase(t), realservers.OwnS3(t))
	n := s.startNodes(t, 1).all[0]
	n.await(t, http.StatusOK, "ok")
	for _, step := range []struct {
		do   func()
		code int
		says string
	}{
		{func() { s.s3.Kill(t) }, http.StatusServiceUnavailable, "the bucket"},
		{func() { server.Kill(t) }, http.StatusServiceUnavailable, "the database"},
		{func() { server.Start(t) }, http.StatusServiceUnavailable, "the bucket"},
		{func() { s.s3.Restart(t) }, http.StatusOK, "ok"},
	} {
		step.do()
		n.await(t, step.code, step.says)
		if code, _ := n.get(t, "/healthz"); code != http.StatusOK {
			t.Errorf("/healthz: %d", code)
		}
		want := map[int]string{http.StatusOK: "SERVING_STATUS_SERVING", http.StatusServiceUnavailable: "SERVING_STATUS_NOT_SERVING"}[step.code]
		if got := n.health(t); got != strings.TrimPrefix(want, "SERVING_STATUS_") {
			t.Errorf("gRPC health: %s, want %s", got, want)
		}
	}
}

// await waits until /readyz gives an answer.
func (n *node) await(t *testing.T, code int, says string) {
	t.Helper()
	got, body := 0, ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if got, body = n.get(t, "/readyz"); got == code && strings.Contains(body, says) {
			return
		}
	}
	t.Fatalf("/readyz: %d %s, want %d %s", got, body, code, says)
}

func (n *node) health(t *testing.T) string {
	t.Helper()
	hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := hc.Post("http://"+n.address+"/grpc.health.v1.Health/Check", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	for _, status := range []string{"NOT_SERVING", "SERVING"} {
		if strings.Contains(string(body), status) {
			return status
		}
	}
	return string(body)
}

// Neither the password of the database nor the key of the bucket is ever shown.
func TestSecretsOfBackendsAreNeverShown(t *testing.T) {
	testenv.OnlyFull(t)
	const canary = "canary-of-the-database"
	server := realservers.Postgres(t, realservers.PostgresOptions{Own: true})
	server.AddUser(t, "keeper", canary)
	s := newSite(t, passworded(t, server.NewDatabase(t), "keeper", canary), realservers.OwnS3(t))
	_, secret := s.s3.Keys()
	settings := filepath.Join(s.home, "settings.toml")
	if err := os.WriteFile(settings, fmt.Appendf(nil, "store = %q\n", s.config.Database), 0o600); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	do := func(code int, env []string, args ...string) {
		t.Helper()
		got, out := s.command(t, env, args...)
		if got != code {
			t.Errorf("stet %q: exit %d, want %d\n%s", args, got, code, out)
		}
		fmt.Fprintf(&shown, "%s\n%s\n", args[len(args)-1], out)
	}
	wrong := []string{"STET_STORE=" + strings.Replace(s.config.Database, canary, canary+"-wrong", 1)}
	several := []string{"STET_STORE=postgres://keeper:" + canary + "@127.0.0.1:1,127.0.0.1:2/stet?connect_timeout=2"}
	for _, how := range [][]string{nil, {"--json"}} {
		do(0, nil, append(how, "config", "explain")...)
		do(0, nil, append(how, "config", "get", "store")...)
		do(0, nil, append(how, "doctor", "--quick")...)
		do(1, wrong, append(how, "doctor", "--quick")...)
		do(8, several, append(how, "ls")...)
		do(2, []string{"STET_STORE=postgres://keeper:" + canary + "@[::1/stet"}, append(how, "ls")...)
	}
	do(0, nil, "init")
	do(0, nil, "--store", s.config.Database, "ls")
	do(0, []string{"STET_STORE="}, "--config", settings, "config", "explain", "store")
	do(0, several, "config", "explain")
	do(1, wrong, "ls")
	do(2, nil, "keys", "init")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	n := s.startLogged(t, log, "--log=text")
	server.Kill(t)
	s.s3.Kill(t)
	n.await(t, http.StatusServiceUnavailable, "the database")
	_, body := n.get(t, "/readyz")
	shown.WriteString(body)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	all := &nodes{site: s, all: []*node{n}}
	_, err = all.client(t).Rows().Get(ctx, "x")
	fmt.Fprintln(&shown, err)
	n.kill()
	logged, err := os.ReadFile(log.Name())
	if err != nil {
		t.Fatal(err)
	}
	shown.Write(logged)
	for name, hidden := range map[string]string{"password": canary, "key of the bucket": secret} {
		if at := strings.Index(shown.String(), hidden); at >= 0 {
			t.Errorf("the %s is shown: …%s…", name, shown.String()[max(0, at-300):min(shown.Len(), at+100)])
		}
	}
	if !strings.Contains(shown.String(), "keeper") {
		t.Error("nothing was shown at all")
	}
}

// The image of an agent's machine goes to the bucket and comes back by addresses of its
// own, by API and by command.
func TestSnapshotsInABucket(t *testing.T) {
	s := newSite(t, realservers.Postgres(t, realservers.PostgresOptions{}).NewDatabase(t), realservers.S3(t))
	n := s.start(t)
	defer n.kill()
	c, err := client.New("http://"+n.address, &client.Options{Token: s.token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, agents := t.Context(), c.Agents()
	if _, err := agents.Create(ctx, "a1", "", ""); err != nil {
		t.Fatal(err)
	}
	if err := agents.SetSnapshot(ctx, "a1", &anyrunv1.ExternalSnapshot{SnapshotId: "image-1", PresignedUrl: "not kept"}); err != nil {
		t.Fatal(err)
	}
	image := strings.Repeat("an image ", 1000)
	for round, address := range []func(upload bool) string{
		func(upload bool) string {
			got, err := agents.Snapshot(ctx, "a1", upload)
			if err != nil || got.GetSnapshotId() != "image-1" || got.GetBlobStorageFormat() != anyrunv1.BlobStorageFormat_BLOB_STORAGE_FORMAT_V1 {
				t.Fatalf("snapshot: %v, %v", got, err)
			}
			return got.GetPresignedUrl()
		},
		func(upload bool) string {
			args := []string{"--store", "http://" + n.address, "snapshot", "a1", "--set", "image-2"}
			if upload {
				args = append(args, "--upload")
			}
			code, out := s.command(t, []string{"STET_TOKEN=" + s.token}, args...)
			if code != 0 {
				t.Fatalf("stet snapshot: exit %d: %s", code, out)
			}
			return strings.TrimSpace(out)
		},
	} {
		content := fmt.Sprint(round, image)
		put, err := http.NewRequestWithContext(ctx, http.MethodPut, address(true), strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		for _, req := range []func() (*http.Response, error){
			func() (*http.Response, error) { return http.DefaultClient.Do(put) },
			func() (*http.Response, error) { return http.Get(address(false)) },
		} {
			res, err := req()
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err := errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("%s: %v, %s", res.Status, err, body)
			}
			if res.Request.Method == http.MethodGet && string(body) != content {
				t.Errorf("%d bytes came back, want %d", len(body), len(content))
			}
		}
	}
}
