package realservers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/s3api"
	"github.com/stet-dev/stet/internal/testenv"
)

// s3AccessKey and s3SecretKey are the credentials of the test servers.
const (
	s3AccessKey = "stet-access"
	s3SecretKey = "stet-secret-of-tests"
	s3Region    = "us-east-1"
)

// S3Server is a running S3-compatible server, or one that was killed and may be
// started again.
type S3Server struct {
	program string // name of a script in internal/tools without .sh
	bin     string
	dir     string
	port    int
	cmd     *exec.Cmd     // nil if it is not running
	exited  chan struct{} // closed when cmd has ended
	err     error         // why it could not be started
}

var s3Shared struct {
	sync.Mutex
	servers map[string]*S3Server
}

// S3 returns a versitygw that the tests of this binary share. The first use on a
// machine builds it, which takes minutes.
func S3(tb testing.TB) *S3Server {
	tb.Helper()
	return sharedS3(tb, "versitygw")
}

// OwnS3 returns a versitygw that the test may kill. It ends with the test.
func OwnS3(tb testing.TB) *S3Server {
	tb.Helper()
	testenv.Need(tb, "versitygw")
	s := launchS3("versitygw")
	tb.Cleanup(s.discard)
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s
}

// Rclone returns an rclone that serves S3, shared like S3: a server without
// conditional writes and checksums. Building it takes many minutes.
func Rclone(tb testing.TB) *S3Server {
	tb.Helper()
	return sharedS3(tb, "rclone")
}

func sharedS3(tb testing.TB, program string) *S3Server {
	tb.Helper()
	testenv.Need(tb, program)
	s3Shared.Lock()
	defer s3Shared.Unlock()
	s := s3Shared.servers[program]
	if s == nil {
		s = launchS3(program)
		if s3Shared.servers == nil {
			s3Shared.servers = make(map[string]*S3Server)
		}
		s3Shared.servers[program] = s
		atEnd(s.discard)
	}
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s
}

func launchS3(program string) *S3Server {
	s := &S3Server{program: program}
	s.err = func() error {
		out, err := exec.Command(tool(program + ".sh")).Output()
		if err != nil {
			return fmt.Errorf("build %s: %w\n%s", program, err, stderrOf(err))
		}
		s.bin = strings.TrimSpace(string(out))
		if s.dir, err = os.MkdirTemp("", "stet-s3-"); err != nil {
			return err
		}
		for _, sub := range []string{"data", "meta"} {
			if err := os.Mkdir(filepath.Join(s.dir, sub), 0o755); err != nil {
				return err
			}
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.port = l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return err
		}
		return s.start()
	}()
	return s
}

// arguments returns the arguments of the program. They do not include the secret,
// because all users of the machine can see them.
func (s *S3Server) arguments() []string {
	data := filepath.Join(s.dir, "data")
	if s.program == "rclone" {
		return []string{"serve", "s3", "--addr", s.addr(), "--config", filepath.Join(s.dir, "rclone.conf"), data}
	}
	return []string{s.addr(), s3Region, filepath.Join(s.dir, "meta"), data}
}

func (s *S3Server) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// start runs the server until it answers.
func (s *S3Server) start() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.bin, s.arguments()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	cmd.Env = append(os.Environ(), "HOME="+s.dir,
		"ROOT_ACCESS_KEY="+s3AccessKey, "ROOT_SECRET_KEY="+s3SecretKey,
		`RCLONE_AUTH_KEY="`+s3AccessKey+","+s3SecretKey+`"`) // a CSV list with one entry
	testenv.EndWithTests(cmd, syscall.SIGKILL)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.program, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	s.cmd, s.exited = cmd, exited
	if err := s.await(time.Now().Add(startTime)); err != nil {
		s.kill()
		text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		return fmt.Errorf("start %s: %w\n%s", s.program, err, text[max(0, len(text)-2000):])
	}
	return nil
}

// await waits until the server answers.
func (s *S3Server) await(deadline time.Time) error {
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	for {
		res, err := client.Get(s.Endpoint())
		if err == nil {
			return res.Body.Close()
		}
		select {
		case <-s.exited:
			return fmt.Errorf("it ended: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// Kill ends the server immediately.
func (s *S3Server) Kill(tb testing.TB) {
	tb.Helper()
	if s.cmd == nil {
		tb.Fatalf("kill %s: it is not running", s.program)
	}
	s.kill()
}

func (s *S3Server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.exited
	s.cmd = nil
}

// Restart starts a server that was killed, at the same address.
func (s *S3Server) Restart(tb testing.TB) {
	tb.Helper()
	if err := s.start(); err != nil {
		tb.Fatal(err)
	}
}

func (s *S3Server) discard() {
	s.kill()
	if s.dir != "" {
		_ = os.RemoveAll(s.dir) // a temporary directory
	}
}

// NewBucket makes an empty bucket for a test and returns its name.
func (s *S3Server) NewBucket(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test-%016x", rand.Uint64())
	web := s3api.NewHTTP(time.Minute, nil)
	defer web.CloseIdleConnections()
	client, err := s3api.New(s3api.Config{
		Bucket: name, Region: s3Region, Endpoint: s.Endpoint(), PathStyle: true, HTTP: web, MaxAttempts: 3, MaxWait: time.Second,
		Credentials: s3api.Static(s3api.Keys{Access: s3AccessKey, Secret: s3SecretKey}),
	})
	if err == nil {
		err = client.CreateBucket(context.Background()) // tb.Context may have ended during a cleanup
	}
	if err != nil {
		tb.Fatalf("make a bucket: %v", err)
	}
	return name
}

// Files returns the directory of a bucket's object files, for tests that damage them.
func (s *S3Server) Files(bucket string) string { return filepath.Join(s.dir, "data", bucket) }

// Endpoint returns the address of the server.
func (s *S3Server) Endpoint() string { return "http://" + s.addr() }

// URL returns the address of a bucket for stet.
func (s *S3Server) URL(bucket string) string {
	return S3URL(s.Endpoint(), bucket)
}

// S3URL returns the address of a bucket behind another endpoint, such as a proxy.
func S3URL(endpoint, bucket string) string {
	query := url.Values{"endpoint": {endpoint}, "region": {s3Region}, "path-style": {"true"}}
	return "s3://" + bucket + "?" + query.Encode()
}

// Keys returns the access key and the secret key.
func (s *S3Server) Keys() (access, secret string) { return s3AccessKey, s3SecretKey }

// Env returns environment variables with the keys.
func (s *S3Server) Env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + s3AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3SecretKey}
}
