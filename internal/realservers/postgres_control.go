package realservers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/testenv"
)

// Kill ends the server and all its processes at once, like a power failure.
func (s *PostgresServer) Kill(tb testing.TB) {
	tb.Helper()
	if s.cmd == nil {
		tb.Fatal("kill postgres: it is not running")
	}
	s.kill()
}

func (s *PostgresServer) kill() {
	if s.cmd == nil {
		return
	}
	pid := s.cmd.Process.Pid
	children := childrenOf(pid)
	_ = s.cmd.Process.Kill() // it may have ended by itself
	for _, child := range children {
		killProcess(child)
	}
	<-s.exited
	s.cmd = nil
}

// childrenOf returns the children of pid that the kernel lists. Others end by
// themselves.
func childrenOf(pid int) []int {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var pids []int
	for _, field := range strings.Fields(string(list)) {
		if child, err := strconv.Atoi(field); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}

// Start starts a server that was killed.
func (s *PostgresServer) Start(tb testing.TB) {
	tb.Helper()
	if err := s.start(); err != nil {
		tb.Fatal(err)
	}
}

// discard stops a server and removes its files. Unlike after a kill, the server ends
// its own processes.
func (s *PostgresServer) discard() {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-s.exited:
		case <-time.After(10 * time.Second):
		}
	}
	s.kill()
	if s.dir != "" {
		_ = os.RemoveAll(s.dir) // a temporary directory
	}
}

// Standby starts a copy of the server. From then on every commit waits until the copy
// has it.
func (s *PostgresServer) Standby(tb testing.TB) *PostgresServer {
	tb.Helper()
	copied := &PostgresServer{opts: s.opts, bin: s.bin}
	tb.Cleanup(copied.discard)
	copied.err = func() error {
		if err := copied.makeDir(); err != nil {
			return err
		}
		if err := s.copyTo(copied); err != nil {
			return err
		}
		if err := copied.configure(); err != nil {
			return err
		}
		if err := copied.start(); err != nil {
			return err
		}
		if err := s.Exec("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'"); err != nil {
			return err
		}
		return s.Exec("postgres", "SELECT pg_reload_conf()")
	}()
	if copied.err != nil {
		tb.Fatal(copied.err)
	}
	s.awaitSynchronous(tb)
	return copied
}

// copyTo makes the data of a standby: with pg_basebackup or, where a version comes without
// it, by copying the files of a server that does not run for a moment.
func (s *PostgresServer) copyTo(copied *PostgresServer) error {
	from := fmt.Sprintf("host=127.0.0.1 port=%d user=stet application_name=standby", s.port)
	if _, err := os.Stat(filepath.Join(s.bin, "pg_basebackup")); err == nil {
		return copied.run("pg_basebackup", "-d", from, "-D", copied.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	}
	s.kill()
	if out, err := exec.Command("cp", "-a", s.data(), copied.data()).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the data of postgres: %w\n%s", err, out)
	}
	if err := os.Remove(filepath.Join(copied.data(), "postmaster.pid")); err != nil {
		return err
	}
	signal := filepath.Join(copied.data(), "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		return err
	}
	if err := giveToServer(signal); err != nil {
		return err
	}
	if err := copied.appendConfig("primary_conninfo = '" + from + "'"); err != nil {
		return err
	}
	return s.start()
}

// awaitSynchronous waits until commits are replicated before they are answered.
func (s *PostgresServer) awaitSynchronous(tb testing.TB) {
	tb.Helper()
	var err error
	for range 600 {
		err = s.Exec("postgres", "SELECT 1/count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')")
		if err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	tb.Fatalf("the standby does not become synchronous: %v", err)
}

// Promote makes a standby the primary. Afterwards it waits for no other server.
func (s *PostgresServer) Promote(tb testing.TB) {
	tb.Helper()
	err := s.run("pg_ctl", "promote", "-D", s.data(), "-w", "-t", "60")
	if err == nil {
		err = s.Exec("postgres", "ALTER SYSTEM RESET synchronous_standby_names")
	}
	if err == nil {
		err = s.Exec("postgres", "SELECT pg_reload_conf()")
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// postgresPrograms returns the directory of a version's programs.
func postgresPrograms(version int) (string, error) {
	switch version {
	case 15:
		// Debian 12 has 15; later releases have a later version.
		if found, _ := filepath.Glob("/usr/lib/postgresql/1[5-9]/bin/initdb"); len(found) > 0 {
			return filepath.Dir(found[0]), nil
		}
		found, err := exec.LookPath("initdb") // on other systems
		if err != nil {
			return "", fmt.Errorf("postgres 15 is missing: install Debian's package postgresql: %w", err)
		}
		return filepath.Dir(found), nil
	case 18:
		out, err := exec.Command(tool("postgres18.sh")).Output()
		if err != nil {
			return "", fmt.Errorf("install postgres 18: %w\n%s", err, stderrOf(err))
		}
		return strings.TrimSpace(string(out)), nil
	}
	return "", fmt.Errorf("postgres %d is not installed", version)
}

// reachable makes sure that the user of the server can run its programs, which may be
// in a checkout that only root can enter: then they are copied beside its data.
func (s *PostgresServer) reachable() error {
	if s.run("postgres", "--version") == nil {
		return nil
	}
	root := filepath.Join(s.dir, "programs")
	if out, err := exec.Command("cp", "-a", filepath.Dir(s.bin), root).CombinedOutput(); err != nil {
		return fmt.Errorf("copy postgres: %w\n%s", err, out)
	}
	s.bin = filepath.Join(root, "bin")
	return nil
}

// tool returns the path of a script in internal/tools.
func tool(name string) string { return filepath.Join(testenv.Root(), "internal", "tools", name) }

func stderrOf(err error) []byte {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.Stderr
	}
	return nil
}

// Log returns what the server has logged.
func (s *PostgresServer) Log(tb testing.TB) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// AddUser creates a user with a password, unlike the user of DSN.
func (s *PostgresServer) AddUser(tb testing.TB, name, password string) {
	tb.Helper()
	rules := filepath.Join(s.data(), "pg_hba.conf")
	err := s.Exec("postgres", fmt.Sprintf("CREATE ROLE %s LOGIN SUPERUSER PASSWORD '%s'", name, password))
	if err == nil {
		var old []byte
		if old, err = os.ReadFile(rules); err == nil { // the first matching rule counts
			err = os.WriteFile(rules, append(fmt.Appendf(nil, "host all %s 127.0.0.1/32 scram-sha-256\n", name), old...), 0o600)
		}
	}
	if err == nil {
		err = s.Exec("postgres", "SELECT pg_reload_conf()")
	}
	if err != nil {
		tb.Fatalf("add a user: %v", err)
	}
}
