package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"syscall"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/postgres"
	"github.com/stet-dev/stet/search/pgsearch"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
	"github.com/stet-dev/stet/workspace"
)

func TestErrorsHaveTheirExitCodes(t *testing.T) {
	tests := []struct {
		err  error
		code int
		name string
	}{
		{errors.New("whatever"), ExitError, "error"},
		{fmt.Errorf("rewind: %w: %w", checkpoint.ErrRolledBack, syscall.EACCES), ExitRolledBack, "rolled_back"},
		{fmt.Errorf("rewind: %w: %w", checkpoint.ErrRolledBack, checkpoint.ErrChanged), ExitRolledBack, "rolled_back"},
		{fmt.Errorf("rewind: %w", checkpoint.ErrInterrupted), ExitError, "error"},
		{&checkpoint.ConflictError{Paths: []string{"a"}}, ExitConflict, "conflict"},
		{checkpoint.ErrStalePlan, ExitConflict, "conflict"},
		{checkpoint.ErrBusy, ExitBusy, "busy"},
		{&checkpoint.AmbiguousError{Ref: "0"}, ExitUsage, "invalid_argument"},
		{checkpoint.ErrBadRef, ExitUsage, "invalid_argument"},
		{checkpoint.ErrNotFound, ExitNotFound, "not_found"},
		{checkpoint.ErrNothing, ExitNotFound, "not_found"},
		{checkpoint.ErrInPlace, ExitConflict, "conflict"},
		{workspace.ErrRootRefused, ExitUsage, "invalid_argument"},
		{conversation.ErrNotFound, ExitNotFound, "not_found"},
		{conversation.ErrStale, ExitConflict, "conflict"},
		{conversation.ErrExists, ExitConflict, "conflict"},
		{&conversation.HydrationError{Source: "pointer", Err: blob.ErrNotFound}, ExitDamage, "damage"},
		{sqlite.ErrNoStore, ExitNotFound, "not_found"},
		{sqlite.ErrDamaged, ExitDamage, "damage"},
		{blob.NotFound(blob.ID{1}), ExitNotFound, "not_found"},
		{blob.Corrupt(blob.ID{1}, "bits"), ExitDamage, "damage"},
		{kv.ErrBusy, ExitBusy, "busy"},
		{blob.ErrFull, ExitError, "full"},
		{blob.ErrReadOnly, ExitError, "read_only"},
		{blob.ErrWrongKey, ExitError, "wrong_key"},
		{kv.ErrUncertain, ExitError, "uncertain"},
		{stet.ErrLocked, ExitError, "wrong_key"},
		{upkeep.ErrNoInventory, ExitError, "unsupported"},
		{sqlite.ErrNewerFormat, ExitError, "newer_format"},
		{kv.ErrNewerFormat, ExitError, "newer_format"},
		{postgres.ErrNewerFormat, ExitError, "newer_format"},
		{pack.ErrNewerFormat, ExitError, "newer_format"},
		{pgsearch.ErrNewerFormat, ExitError, "newer_format"},
		{checkpoint.ErrNewerFormat, ExitError, "newer_format"},
		{cloudagent.ErrMetadataVersion, ExitError, "newer_format"},
		{keyring.ErrVersion, ExitError, "newer_format"},
		{fmt.Errorf("rewind: %w: %w", checkpoint.ErrRolledBack, blob.ErrCorrupt), ExitDamage, "damage"},
		{fmt.Errorf("rewind: %w: %w", checkpoint.ErrRolledBack, blob.ErrFull), ExitRolledBack, "rolled_back"},
		{&net.OpError{Op: "listen", Err: syscall.EADDRINUSE}, ExitUnreachable, "unreachable"},
		{syscall.ENOTDIR, ExitUsage, "invalid_argument"},
		{usage(errors.New("how")), ExitUsage, "invalid_argument"},
	}
	a := &app{}
	for _, test := range tests {
		code, name := Code(a.explain(test.err))
		if code != test.code || name != test.name {
			t.Errorf("%v: got %d %s, want %d %s", test.err, code, name, test.code, test.name)
		}
	}
}

func TestEveryClassHasAnExitCode(t *testing.T) {
	for _, class := range fault.Classes() {
		if found := exits[class]; found.code == ExitOK || found.name == "" {
			t.Errorf("%v has the exit code %d and the name %q", class, found.code, found.name)
		}
	}
}

// The page about the command line lists every name.
func TestNamesOfErrorsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/format/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range exits {
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| %d \\|.*`%s`", found.code, found.name))
		if !row.Match(page) {
			t.Errorf("docs/format/cli.md does not list %q with exit code %d", found.name, found.code)
		}
	}
}

func TestSizesAndAges(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "0": 0, "12": 12, "1K": 1024, "1kib": 1024, "2 GiB": 2 << 30, "1.5MiB": 3 << 19, "3MB": 3_000_000, "7B": 7,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "-1", "1PB", "NaN", "1e30", "GiB", "1 2"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", text, got)
		}
	}
	for text, want := range map[string]string{"": "0s", "90d": "2160h0m0s", "36h": "36h0m0s", "1m30s": "1m30s"} {
		if got, err := parseAge(text); err != nil || got.String() != want {
			t.Errorf("parseAge(%q) = %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"d", "-1h", "soon", "-5d", "99999999d"} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("parseAge(%q) = %v, want an error", text, got)
		}
	}
}

func TestTerminalsAreSafeFromTitles(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "two\nlines": "two lines", "\x1b[31mred": "�[31mred", "a\u202eb": "a�b", "\u009bx": "�x", "tab\there": "tab here",
	} {
		if got := clip(text, 40); got != want {
			t.Errorf("clip(%q) = %q, want %q", text, got, want)
		}
	}
	if got := clip("a long sentence", 7); got != "a long…" {
		t.Errorf("got %q", got)
	}
}

func TestShortIDsAreUnique(t *testing.T) {
	ids := []string{"01JCX4AAAA", "01JCX4BBBB", "unique-one", "ab", "abcdefgh", "abcdefghij"}
	short := shortIDs(ids)
	seen := make(map[string]string)
	for _, id := range ids {
		s := short[id]
		if s == "" || id[:len(s)] != s {
			t.Errorf("%s is shortened to %q", id, s)
		}
		if other, taken := seen[s]; taken {
			t.Errorf("%s and %s are both %q", id, other, s)
		}
		seen[s] = id
	}
	if short["unique-one"] != "unique" {
		t.Errorf("got %q, want unique", short["unique-one"])
	}
}
