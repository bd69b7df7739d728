package wirecode

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/fault"
)

func TestEveryClassHasACode(t *testing.T) {
	for _, class := range fault.Classes() {
		if codes[class] == 0 || Of(class) != codes[class] {
			t.Errorf("%v has no code", class)
		}
	}
	if len(codes) != len(fault.Classes()) {
		t.Errorf("%d classes have codes, want %d", len(codes), len(fault.Classes()))
	}
	if got := Of(fault.Unknown); got != connect.CodeInternal {
		t.Errorf("an unknown class has %v", got)
	}
}

func TestEnded(t *testing.T) {
	for err, want := range map[error]connect.Code{
		fmt.Errorf("read: %w", context.Canceled): connect.CodeCanceled,
		context.DeadlineExceeded:                 connect.CodeDeadlineExceeded,
		errors.New("other"):                      0,
	} {
		if got, ok := Ended(err); got != want || ok != (want != 0) {
			t.Errorf("%v: %v, %v", err, got, ok)
		}
	}
}

func TestName(t *testing.T) {
	absent := fault.Named(fault.NotFound, "test-absent", "absent")
	for _, test := range []struct {
		err     error
		reasons []string
		class   string
	}{
		{errors.New("other"), nil, ""},
		{fault.New(fault.Busy, "without a reason"), nil, ""},
		{fmt.Errorf("read: %w: %w", absent, fault.Named(fault.Damaged, "test-torn", "torn")), []string{"test-torn", "test-absent"}, "damaged"},
	} {
		h := http.Header{}
		Name(h, test.err)
		if got := h.Values(ReasonHeader); !slices.Equal(got, test.reasons) || h.Get(ClassHeader) != test.class {
			t.Errorf("%v: got %q of class %q", test.err, got, h.Get(ClassHeader))
		}
	}
}
