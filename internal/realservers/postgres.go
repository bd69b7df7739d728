package realservers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/internal/testenv"
)

// PostgresOptions select a server; the zero value is Postgres 15 without fsync.
type PostgresOptions struct {
	// Version is 15 (Debian's package, the default) or 18 (from npm).
	Version int
	// Fsync makes acknowledged data survive kill -9 of the server.
	Fsync bool
	// Own gives the test its own server, which ends with it.
	Own bool
	// Archive keeps the log, so that the server can be restored to any moment; it
	// needs Own.
	Archive bool
}

// PostgresServer is a running server, or one that was killed and may be started
// again.
type PostgresServer struct {
	opts   PostgresOptions
	bin    string // of its programs
	dir    string // with the data in it
	port   int
	cmd    *exec.Cmd     // nil if it is not running
	exited chan struct{} // closed when cmd has ended
	err    error         // why it could not be started
}

// PostgresVersions returns the versions that this run tests: Debian's and, in a full
// run, also the newest.
func PostgresVersions() []int {
	if testenv.Full() {
		return []int{15, 18}
	}
	return []int{15}
}

var postgresShared struct {
	sync.Mutex
	servers map[PostgresOptions]*PostgresServer
}

// Postgres returns a server, shared by the tests of this binary unless opts.Own
// is set.
func Postgres(tb testing.TB, opts PostgresOptions) *PostgresServer {
	tb.Helper()
	if opts.Version == 0 {
		opts.Version = 15
	}
	testenv.Need(tb, map[int]string{15: "postgres", 18: "postgres18"}[opts.Version])
	if opts.Own {
		s := launchPostgres(opts)
		tb.Cleanup(s.discard)
		if s.err != nil {
			tb.Fatal(s.err)
		}
		return s
	}
	s := sharedPostgres(opts)
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s
}

func sharedPostgres(opts PostgresOptions) *PostgresServer {
	postgresShared.Lock()
	defer postgresShared.Unlock()
	s := postgresShared.servers[opts]
	if s == nil {
		s = launchPostgres(opts)
		if postgresShared.servers == nil {
			postgresShared.servers = make(map[PostgresOptions]*PostgresServer)
		}
		postgresShared.servers[opts] = s
		atEnd(s.discard)
	}
	return s
}

// launchPostgres creates a new cluster and starts it.
func launchPostgres(opts PostgresOptions) *PostgresServer {
	s := &PostgresServer{opts: opts}
	s.err = func() (err error) {
		if s.bin, err = postgresPrograms(opts.Version); err != nil {
			return err
		}
		if err := s.makeDir(); err != nil {
			return err
		}
		if err := s.reachable(); err != nil {
			return err
		}
		if err := s.run("initdb", "-D", s.data(), "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C", "-U", "stet"); err != nil {
			return err
		}
		if err := s.configure(); err != nil {
			return err
		}
		return s.start()
	}()
	return s
}

func (s *PostgresServer) data() string { return filepath.Join(s.dir, "data") }

// makeDir creates a directory that belongs to the user of the server, and picks a
// port.
func (s *PostgresServer) makeDir() error {
	var err error
	if s.dir, err = os.MkdirTemp("", "stet-postgres-"); err != nil {
		return err
	}
	if err := giveToServer(s.dir); err != nil {
		return err
	}
	return s.pickPort()
}

func (s *PostgresServer) pickPort() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	return l.Close()
}

func (s *PostgresServer) configure() error {
	onOff := map[bool]string{true: "on", false: "off"}
	if s.opts.Archive {
		if err := s.appendConfig("archive_mode = on", fmt.Sprintf("archive_command = 'cp %%p %s/%%f'", s.archive())); err != nil {
			return err
		}
	}
	return s.appendConfig(
		"listen_addresses = '127.0.0.1'",
		fmt.Sprintf("port = %d", s.port),
		fmt.Sprintf("unix_socket_directories = '%s'", s.dir),
		"max_connections = 200",
		"shared_buffers = 64MB",
		"max_wal_senders = 4",
		"wal_keep_size = 256MB",
		"fsync = "+onOff[s.opts.Fsync],
		"full_page_writes = "+onOff[s.opts.Fsync],
	)
}

func (s *PostgresServer) appendConfig(lines ...string) error {
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	return err
}

// startTime is how long a server may take to answer, recovery included.
const startTime = 60 * time.Second

// start runs the server until it answers. After a kill the old server's children may
// briefly hold its memory, so a start is retried.
func (s *PostgresServer) start() error {
	deadline := time.Now().Add(startTime)
	for {
		if err := s.spawn(); err != nil {
			return err
		}
		err := s.await(deadline)
		if err == nil {
			return nil
		}
		s.kill()
		if port := s.port; portTaken(port) {
			if err := errors.Join(s.pickPort(), s.configure()); err != nil {
				return fmt.Errorf("move from port %d: %w", port, err)
			}
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("start postgres %d: %w\n%s", s.opts.Version, err, log[max(0, len(log)-2000):])
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func portTaken(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return true
	}
	return l.Close() != nil
}

func (s *PostgresServer) spawn() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.command("postgres", "-D", s.data())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	s.cmd, s.exited = cmd, exited
	return nil
}

// await waits until the server answers a query, and not another one that got the port
// meanwhile.
func (s *PostgresServer) await(deadline time.Time) error {
	ours := fmt.Sprintf("SELECT 1/(current_setting('data_directory') = '%s')::int", s.data())
	for {
		err := s.Exec("postgres", ours)
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("it ended: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// Exec runs a statement in a database.
func (s *PostgresServer) Exec(database, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, s.DSN(database))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql)
	return err
}

// Addr returns where the server listens.
func (s *PostgresServer) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// DSN returns the connection string of a database.
func (s *PostgresServer) DSN(database string) string {
	return fmt.Sprintf("postgres://stet@%s/%s?sslmode=disable", s.Addr(), database)
}

// NewDatabase creates an empty database for a test and returns its connection string.
func (s *PostgresServer) NewDatabase(tb testing.TB) string {
	tb.Helper()
	dsn, err := s.newDatabase()
	if err != nil {
		tb.Fatal(err)
	}
	return dsn
}

func (s *PostgresServer) newDatabase() (string, error) {
	name := fmt.Sprintf("test_%016x", rand.Uint64())
	if err := s.Exec("postgres", "CREATE DATABASE "+name); err != nil {
		return "", fmt.Errorf("create a database: %w", err)
	}
	return s.DSN(name), nil
}

// PostgresDatabase is NewDatabase on a shared server for examples, which have no
// testing.TB.
func PostgresDatabase() (string, error) {
	s := sharedPostgres(PostgresOptions{Version: 15})
	if s.err != nil {
		return "", s.err
	}
	return s.newDatabase()
}

// command prepares one of the server's programs, as the user that runs it.
func (s *PostgresServer) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+s.dir)
	asServer(cmd)
	testenv.EndWithTests(cmd, syscall.SIGQUIT)
	return cmd
}

func (s *PostgresServer) run(name string, args ...string) error {
	out, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s of postgres %d: %w\n%s", name, s.opts.Version, err, out)
	}
	return nil
}
