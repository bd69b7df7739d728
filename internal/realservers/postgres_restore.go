package realservers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// archive is the directory of the server's archived log.
func (s *PostgresServer) archive() string { return s.dir }

// Program returns the path of one of the server's programs.
func (s *PostgresServer) Program(name string) string { return filepath.Join(s.bin, name) }

// Backup copies the server's files while it runs and returns the directory of the
// copy.
func (s *PostgresServer) Backup(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(s.dir, fmt.Sprintf("backup-%d", time.Now().UnixNano()))
	from := fmt.Sprintf("host=127.0.0.1 port=%d user=stet", s.port)
	if err := s.run("pg_basebackup", "-d", from, "-D", dir, "-X", "none", "-c", "fast", "--no-sync"); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// Remember names this moment for RestoreTo.
func (s *PostgresServer) Remember(tb testing.TB, name string) {
	tb.Helper()
	if err := s.Exec("postgres", fmt.Sprintf("SELECT pg_create_restore_point('%s')", name)); err != nil {
		tb.Fatal(err)
	}
}

// RestoreTo starts another server from a backup and the log since, in the state of a
// named moment. It archives the log up to now first.
func (s *PostgresServer) RestoreTo(tb testing.TB, backup, name string) *PostgresServer {
	tb.Helper()
	if err := s.Exec("postgres", "SELECT pg_switch_wal()"); err != nil {
		tb.Fatal(err)
	}
	opts := s.opts
	opts.Archive = false
	restored := &PostgresServer{opts: opts, bin: s.bin}
	tb.Cleanup(restored.discard)
	err := func() error {
		if err := restored.makeDir(); err != nil {
			return err
		}
		if err := os.Rename(backup, restored.data()); err != nil {
			return err
		}
		if err := restored.configure(); err != nil {
			return err
		}
		err := restored.appendConfig(
			"archive_mode = off",
			fmt.Sprintf("restore_command = 'cp %s/%%f %%p'", s.archive()),
			fmt.Sprintf("recovery_target_name = '%s'", name),
			"recovery_target_action = promote",
		)
		if err == nil {
			err = os.WriteFile(filepath.Join(restored.data(), "recovery.signal"), nil, 0o666)
		}
		if err == nil {
			err = giveToServer(filepath.Join(restored.data(), "recovery.signal"))
		}
		if err != nil {
			return err
		}
		return restored.start()
	}()
	if err != nil {
		tb.Fatal(err)
	}
	for range 600 {
		if err = restored.Exec("postgres", "SELECT 1/(NOT pg_is_in_recovery())::int"); err == nil {
			return restored
		}
		time.Sleep(50 * time.Millisecond)
	}
	log, _ := os.ReadFile(filepath.Join(restored.dir, "log"))
	tb.Fatalf("the restored server does not take over: %v\n%s", err, strings.TrimSpace(string(log)))
	return nil
}
