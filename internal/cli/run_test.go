package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/workspace"
)

// inWorkspace runs fn with a new store and a workspace of one file.
func inWorkspace(t *testing.T, fn func(*app, *place)) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("STET_STORE", filepath.Join(t.TempDir(), "store"))
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	a := &app{in: strings.NewReader(""), out: new(bytes.Buffer), err: new(bytes.Buffer), workspace: dir}
	if err := a.withPlace(t.Context(), true, func(p *place) error { fn(a, p); return nil }); err != nil {
		t.Fatal(err)
	}
}

// An interrupt that comes while the first checkpoint is made is not lost.
func TestInterruptedRunDoesNotStart(t *testing.T) {
	inWorkspace(t, func(a *app, p *place) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s, err := a.supervise(t.Context(), p, runOptions{}, []string{"touch", "proof"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.choose(t.Context(), nil); err != nil { // as if the scan failed after it
			t.Fatal(err)
		}
		if err := s.begin(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("begin: %v, want cancelled", err)
		}
		if _, err := p.db.Conversations().Get(t.Context(), s.conv.ID()); !errors.Is(err, conversation.ErrNotFound) {
			t.Errorf("an empty conversation is left: %v", err)
		}
		if _, err := s.process(ctx, "/bin/true", []string{"true"}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("process: %v, want cancelled", err)
		}
		if err := a.runWith(ctx, p, runOptions{}, []string{"touch", "proof"}); !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v, want cancelled", err)
		}
		if _, err := os.Stat(filepath.Join(p.space.Path(), "proof")); err == nil {
			t.Error("the command ran")
		}
	})
}

func TestInterruptedSaysWhatIsLeft(t *testing.T) {
	for want, cause := range map[string]error{
		"interrupted":                      context.Canceled,
		"interrupted; nothing was changed": errors.Join(checkpoint.ErrRolledBack, context.Canceled),
	} {
		err := interrupted(cause)
		if code, _ := Code(err); code != ExitInterrupted || err.Error() != want {
			t.Errorf("%v: code %d, %q; want %q", cause, code, err, want)
		}
	}
	err := interrupted(errors.Join(checkpoint.ErrInterrupted, context.Canceled))
	if !errors.Is(err, checkpoint.ErrInterrupted) || !strings.Contains(err.Error(), "open the workspace again") {
		t.Errorf("%v hides that the rewind was interrupted", err)
	}
}

// A burst captures the paths that it is told. What hints miss, the end of the run finds.
func TestBurstsCaptureNamedPaths(t *testing.T) {
	inWorkspace(t, func(a *app, p *place) {
		ctx := t.Context()
		s, err := a.supervise(ctx, p, runOptions{}, []string{"touch", "b"})
		if err == nil {
			err = s.begin(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		has := func(step string, want ...string) {
			t.Helper()
			changes, err := workspace.Diff(ctx, p.db.Blobs(), s.first.Tree, s.last.Tree)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range changes {
				got = append(got, c.Path)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", step, got, want)
			}
		}
		write := func(names ...string) {
			t.Helper()
			for _, name := range names {
				if err := os.WriteFile(filepath.Join(p.space.Path(), name), []byte(name), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		write("b", "c")
		s.burst(ctx, nil)
		has("unknown paths", "b", "c")
		last := s.last
		s.burst(ctx, []string{"b"})
		if s.last != last {
			t.Errorf("checkpoint %s, although nothing changed", s.last.Name())
		}
		write("d", "e", "f")
		s.burst(ctx, []string{"d"})
		has("one path", "b", "c", "d")
		if !s.last.Hinted {
			t.Error("everything was scanned for one path")
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		s.burst(cancelled, []string{"e"}) // fails
		write("g")
		s.burst(ctx, []string{"g"})
		has("paths of a failed burst", "b", "c", "d", "e", "g")
		if err := s.end(ctx, 0); err != nil {
			t.Fatal(err)
		}
		has("the end", "b", "c", "d", "e", "f", "g")
		if s.last.Hinted {
			t.Error("the end of the run did not look at everything")
		}
	})
}

// The first of two runs is interrupted while it scans; the second has waited for the lock of
// the workspace, and chooses before the first has removed its conversation.
func TestAnInterruptedRunLosesNoTurnOfAnother(t *testing.T) {
	inWorkspace(t, func(a *app, p *place) {
		ctx := t.Context()
		var runs [2]*supervised
		for i := range runs {
			var err error
			if runs[i], err = a.supervise(ctx, p, runOptions{}, []string{"touch", "x"}); err != nil {
				t.Fatal(err)
			}
		}
		one, two := runs[0], runs[1]
		if _, err := one.choose(ctx, nil); err != nil { // then its scan fails and the lock is free
			t.Fatal(err)
		}
		if err := two.begin(ctx); err != nil {
			t.Fatal(err)
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if err := one.begin(cancelled); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.space.Path(), "x"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(two.end(ctx, 0), two.unsaid); err != nil {
			t.Errorf("the turn of the second run is lost: %v", err)
		}
	})
}
