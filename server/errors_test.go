package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/wirecode"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/postgres"
	"github.com/stet-dev/stet/search/pgsearch"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
)

func TestErrorsHaveTheirCodes(t *testing.T) {
	for _, test := range []struct {
		err     error
		code    connect.Code
		reasons []string
	}{
		{errors.New("open /var/lib/stet: it failed"), connect.CodeInternal, nil},
		{syscall.ENOENT, connect.CodeInternal, nil}, // its text names a path
		{sqlite.ErrNoStore, connect.CodeInternal, nil},
		{s3blob.ErrNoBucket, connect.CodeInternal, nil}, // not the caller's blob
		{s3blob.ErrDenied, connect.CodeInternal, nil},   // not the caller's credentials
		{fmt.Errorf("%w: %w", blob.ErrNotFound, context.Canceled), connect.CodeCanceled, []string{"blob-not-found"}},
		{context.DeadlineExceeded, connect.CodeDeadlineExceeded, nil},
		{blob.NotFound(blob.ID{1}), connect.CodeNotFound, []string{"blob-not-found"}},
		{sqlite.ErrNewerFormat, connect.CodeFailedPrecondition, []string{"newer-store"}},
		{postgres.ErrNewerFormat, connect.CodeFailedPrecondition, []string{"newer-database"}},
		{pack.ErrNewerFormat, connect.CodeFailedPrecondition, []string{"newer-pack"}},
		{pgsearch.ErrNewerFormat, connect.CodeFailedPrecondition, []string{"newer-search-tables"}},
		{kv.ErrNewerFormat, connect.CodeFailedPrecondition, []string{"newer-format"}},
		{checkpoint.ErrNewerFormat, connect.CodeFailedPrecondition, []string{"newer-checkpoint", "newer-format"}},
		{cloudagent.ErrMetadataVersion, connect.CodeFailedPrecondition, []string{"newer-metadata"}},
		{stet.ErrLocked, connect.CodeFailedPrecondition, []string{"locked"}},
		{upkeep.ErrNoInventory, connect.CodeUnimplemented, []string{"no-inventory"}},
		{kv.ErrBusy, connect.CodeUnavailable, []string{"busy"}},
		{blob.ErrClosed, connect.CodeUnavailable, []string{"store-closed"}},
		{postgres.ErrUnavailable, connect.CodeUnavailable, []string{"database-unreachable"}},
		{s3blob.ErrUnavailable, connect.CodeUnavailable, []string{"bucket-unreachable"}},
		{postgres.ErrUnknownOutcome, connect.CodeUnknown, []string{"unknown-outcome"}},
		{conversation.ErrStale, connect.CodeAborted, []string{"stale-writer"}},
		{conversation.ErrExists, connect.CodeAlreadyExists, []string{"conversation-exists"}},
		{&conversation.HydrationError{Source: "pointer", Err: blob.ErrNotFound}, connect.CodeDataLoss, []string{"conversation-data-loss", "blob-not-found"}},
		{fmt.Errorf("%w: %w", checkpoint.ErrRolledBack, checkpoint.ErrChanged), connect.CodeAborted, []string{"rolled-back", "file-changed"}},
		{checkpoint.ErrBadRecord, connect.CodeDataLoss, []string{"bad-checkpoint", "corrupt-row"}},
		{checkpoint.ErrStalePlan, connect.CodeFailedPrecondition, []string{"stale-plan"}},
		{checkpoint.ErrDisabled, connect.CodeFailedPrecondition, []string{"checkpoints-disabled"}},
		{checkpoint.ErrNothing, connect.CodeFailedPrecondition, []string{"nothing-to-undo"}},
		{checkpoint.ErrOtherWorkspace, connect.CodeInvalidArgument, []string{"other-workspace"}},
		{checkpoint.ErrInterrupted, connect.CodeUnavailable, []string{"rewind-interrupted"}},
		{cloudagent.ErrTooLarge, connect.CodeResourceExhausted, []string{"update-too-large"}},
	} {
		err := wireError(fmt.Errorf("do it: %w", test.err))
		var out *connect.Error
		if !errors.As(err, &out) || out.Code() != test.code {
			t.Errorf("%v: got %v, want %v", test.err, connect.CodeOf(err), test.code)
			continue
		}
		if got := out.Meta().Values(wirecode.ReasonHeader); !slices.Equal(got, test.reasons) {
			t.Errorf("%v: got the reasons %q, want %q", test.err, got, test.reasons)
		}
	}
}

// A long text is cut, and nothing else of the error.
func TestLongErrorsAreCut(t *testing.T) {
	long := strings.Repeat("é", maxText)
	conflict := &kv.ConflictError{Key: long, Want: 1, Got: 2}
	for _, err := range []error{fmt.Errorf("%w: %s", blob.ErrNotFound, long), conflict, connect.NewError(connect.CodeNotFound, errors.New(long))} {
		var was, got *connect.Error
		if !errors.As(withCode(err), &was) || !errors.As(wireError(err), &got) {
			t.Fatal("an error without a code")
		}
		if got.Code() != was.Code() || !maps.EqualFunc(got.Meta(), was.Meta(), slices.Equal) || len(got.Details()) != len(was.Details()) || !errors.Is(got, err) {
			t.Errorf("got %v, %v and %d details, want %v, %v and %d", got.Code(), got.Meta(), len(got.Details()), was.Code(), was.Meta(), len(was.Details()))
		}
		if text := got.Message(); len(text) > maxText+100 || !utf8.ValidString(text) || !strings.HasSuffix(text, "bytes)") || !strings.HasPrefix(was.Message(), text[:maxText/2]) {
			t.Errorf("the text is %q", text)
		}
	}
	if short := wireError(blob.ErrNotFound); strings.Contains(short.Error(), "…") {
		t.Errorf("a short text was cut: %v", short)
	}
}

// Every exception is a reason that some sentinel has.
func TestExceptionsAreOfSentinels(t *testing.T) {
	for reason := range exceptions {
		known := slices.ContainsFunc([]error{checkpoint.ErrDisabled, checkpoint.ErrNothing, checkpoint.ErrOtherWorkspace, checkpoint.ErrInterrupted}, func(err error) bool {
			return fault.Reasons(err)[0] == reason
		})
		if !known {
			t.Errorf("no sentinel has the reason %q", reason)
		}
	}
}
