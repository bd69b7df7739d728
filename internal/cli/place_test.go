//go:build linux

package cli

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/workspace"
)

// Staged files that cannot be removed are named, once.
func TestReportsWhatCannotBeCleanedUp(t *testing.T) {
	inWorkspace(t, func(a *app, p *place) {
		if _, err := p.space.Checkpoint(t.Context(), checkpoint.Request{}); err != nil {
			t.Fatal(err)
		}
		row, err := p.db.Rows().Get(t.Context(), keyspace.Workspace(p.space.ID()))
		if err != nil {
			t.Fatal(err)
		}
		var rec stetv1.WorkspaceRecord
		if err := proto.Unmarshal(row.Value, &rec); err != nil {
			t.Fatal(err)
		}
		stuck(t, filepath.Join(p.space.Path(), workspace.StagePrefix+hex.EncodeToString(rec.Nonce)+"-left"))
		again, err := a.openPlace(t.Context(), p.db)
		if err != nil {
			t.Fatal(err)
		}
		defer again.space.Close()
		if text := a.err.(*bytes.Buffer).String(); strings.Count(text, "staged files stay") != 1 {
			t.Errorf("told %q", text)
		}
	})
	a := &app{err: new(bytes.Buffer)}
	a.tellRecovery(&checkpoint.Recovery{CleanupError: errors.New("device busy")})
	if text := a.err.(*bytes.Buffer).String(); !strings.Contains(text, "was interrupted") || !strings.Contains(text, "stay until the next command here: device busy") {
		t.Errorf("told %q", text)
	}
}

// stuck makes a directory that cannot be removed before the test ends.
func stuck(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "n0")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) // for others to remove it
		return
	}
	const immutable = 0x10 // FS_IMMUTABLE_FL
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // only read
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, immutable); err != nil {
		t.Skipf("root can remove every file here: %v", err)
	}
	t.Cleanup(func() { _ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0) })
}
