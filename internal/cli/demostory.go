package cli

import (
	"strings"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// scene is one turn of the demonstration.
type scene struct {
	yours   map[string]string // your edits before it
	ask     string
	message string
	think   string // the agent's thoughts before it
	sub     *helper
	say     string            // the agent's answer
	files   map[string]string // written by the agent; empty removes
	runs    []string          // commands that it reports
	fails   string            // a command that it reports as failed first
	minutes int
	back    uint64 // turn to which you then rewind
}

// helper is a subagent of a scene.
type helper struct {
	id, ask, think, say string
	runs                []string
}

// steps returns the agent's work for the transcript; old holds the previous content of
// the files.
func (s scene) steps(old map[string]string) []*agentv1.ConversationStep {
	var steps []*agentv1.ConversationStep
	if s.think != "" {
		steps = append(steps, &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ThinkingMessage{
			ThinkingMessage: &agentv1.ThinkingMessage{Text: s.think},
		}})
	}
	if s.sub != nil {
		steps = append(steps, callStep(s.sub.call()))
	}
	if s.fails != "" {
		steps = append(steps, callStep(failedShell(s.fails)))
	}
	for _, name := range sortedKeys(s.files) {
		var before *string
		if text, ok := old[name]; ok {
			before = &text
		}
		steps = append(steps, callStep(editCall(name, before, s.files[name])))
	}
	for _, command := range s.runs {
		steps = append(steps, callStep(shellCall(command, printed(command))))
	}
	return append(steps, &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
		AssistantMessage: &agentv1.AssistantMessage{Text: s.say},
	}})
}

// printed returns the output of a command that the agent did not really run.
func printed(command string) string {
	switch tool, _, _ := strings.Cut(command, " "); tool {
	case "go":
		return "ok  \tshop/checkout\t0.004s\n"
	case "pytest":
		return "............\n12 passed in 0.31s\n"
	case "rg":
		return "prices/list.go:14:\trows, err := db.Query(ids)\nprices/list.go:21:\t\terr = db.QueryRow(price, id).Scan(&cents)\n"
	}
	return ""
}

func callStep(call *agentv1.ToolCall) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: call}}
}

func editCall(name string, before *string, after string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_EditToolCall{EditToolCall: &agentv1.EditToolCall{
		Args: &agentv1.EditArgs{Path: name},
		Result: &agentv1.EditResult{Result: &agentv1.EditResult_Success{
			Success: &agentv1.EditSuccess{Path: name, BeforeFullFileContent: before, AfterFullFileContent: after},
		}},
	}}}
}

func shellCall(command, output string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{
		Args: &agentv1.ShellArgs{Command: command},
		Result: &agentv1.ShellResult{Result: &agentv1.ShellResult_Success{
			Success: &agentv1.ShellSuccess{Command: command, Stdout: output},
		}},
	}}}
}

func failedShell(command string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{
		Args: &agentv1.ShellArgs{Command: command},
		Result: &agentv1.ShellResult{Result: &agentv1.ShellResult_Failure{
			Failure: &agentv1.ShellFailure{Command: command, ExitCode: 1, Stderr: "exit status 1\n"},
		}},
	}}}
}

func (h *helper) call() *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_TaskToolCall{TaskToolCall: &agentv1.TaskToolCall{
		Args: &agentv1.TaskArgs{Description: h.ask, Prompt: h.ask, AgentId: &h.id},
		Result: &agentv1.TaskResult{Result: &agentv1.TaskResult_Success{
			Success: &agentv1.TaskSuccess{AgentId: &h.id},
		}},
	}}}
}

// demoStart is the project before the first turn.
var demoStart = map[string]string{
	"README.md": "# shop-api\n\nThe checkout of a small shop.\n",
	"go.mod":    "module shop\n\ngo 1.26\n",
	".gitignore": `/build/
*.log
`,
	"checkout/checkout.go": `// Package checkout turns a cart into a paid order.
package checkout

import "context"

// Payer charges a customer.
type Payer interface {
	Charge(ctx context.Context, customer string, cents int64) error
}

// Pay charges the total of a cart.
func Pay(ctx context.Context, p Payer, customer string, prices []int64) error {
	var total int64
	for _, price := range prices {
		total += price
	}
	return p.Charge(ctx, customer, total)
}
`,
	"checkout/checkout_test.go": `package checkout

import (
	"context"
	"testing"
)

type fakePayer struct{ charged int64 }

func (f *fakePayer) Charge(_ context.Context, _ string, cents int64) error {
	f.charged += cents
	return nil
}

func TestPayChargesTheTotal(t *testing.T) {
	payer := &fakePayer{}
	if err := Pay(context.Background(), payer, "ada", []int64{250, 100}); err != nil {
		t.Fatal(err)
	}
	if payer.charged != 350 {
		t.Errorf("charged %d, want 350", payer.charged)
	}
}
`,
}

const demoRetry = `package checkout

import (
	"context"
	"errors"
	"time"
)

// ErrBusy is what a payer returns when it may work a little later.
var ErrBusy = errors.New("payer is busy")

// Retry calls fn until it returns something else than ErrBusy, three times at most.
func Retry(ctx context.Context, fn func() error) error {
	var err error
	for wait := 50 * time.Millisecond; wait < time.Second; wait *= 4 {
		if err = fn(); !errors.Is(err, ErrBusy) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}
`

const demoRetryTest = `package checkout

import (
	"context"
	"testing"
)

func TestRetryGivesUp(t *testing.T) {
	calls := 0
	err := Retry(context.Background(), func() error { calls++; return ErrBusy })
	if err != ErrBusy || calls != 3 {
		t.Errorf("%d calls, error %v", calls, err)
	}
}
`

// demoScenes is the story: two good turns, one that you rewind, one good turn.
var demoScenes = []scene{
	{
		ask: "add retry to checkout", message: "demo-1", minutes: 3,
		say:   "Payments are now tried up to three times when the payer is busy.",
		files: map[string]string{"checkout/retry.go": demoRetry, "checkout/checkout.go": demoPay},
		runs:  []string{"go build ./..."},
	},
	{
		ask: "write tests for it", message: "demo-2", minutes: 2,
		say:   "Added a test that counts the calls. All tests pass.",
		files: map[string]string{"checkout/retry_test.go": demoRetryTest},
		runs:  []string{"go test ./...", "go vet ./..."},
	},
	{
		ask: "try a queue instead", message: "demo-3", minutes: 5, back: 2,
		say: "Orders now go through a queue with a worker; the retry is gone.",
		files: map[string]string{
			"checkout/retry.go": "", "checkout/retry_test.go": "",
			"queue/queue.go":  "// Package queue holds orders until the payer has time.\npackage queue\n\n// Queue is a list of orders.\ntype Queue struct{ orders []string }\n\n// Push adds an order.\nfunc (q *Queue) Push(order string) { q.orders = append(q.orders, order) }\n",
			"queue/worker.go": "package queue\n\n// Work takes orders until there are none.\nfunc (q *Queue) Work(pay func(string) error) error {\n\tfor len(q.orders) > 0 {\n\t\tif err := pay(q.orders[0]); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tq.orders = q.orders[1:]\n\t}\n\treturn nil\n}\n",
		},
		runs: []string{"go build ./..."},
	},
	{
		yours: map[string]string{"NOTES.md": "Ask the bank how long a charge may take.\n"},
		ask:   "also cover the timeout", message: "demo-4", minutes: 4,
		say: "A charge that takes longer than five seconds now counts as busy, with a test.",
		files: map[string]string{
			"checkout/timeout.go":    demoTimeout,
			"checkout/retry_test.go": demoRetryTest + "\nfunc TestSlowIsBusy(t *testing.T) {\n\tif err := Slow(context.DeadlineExceeded); err != ErrBusy {\n\t\tt.Errorf(\"got %v, want ErrBusy\", err)\n\t}\n}\n",
		},
		runs: []string{"go test ./..."},
	},
}

const demoPay = `// Package checkout turns a cart into a paid order.
package checkout

import "context"

// Payer charges a customer.
type Payer interface {
	Charge(ctx context.Context, customer string, cents int64) error
}

// Pay charges the total of a cart, again if the payer is busy.
func Pay(ctx context.Context, p Payer, customer string, prices []int64) error {
	var total int64
	for _, price := range prices {
		total += price
	}
	return Retry(ctx, func() error { return p.Charge(ctx, customer, total) })
}
`

const demoTimeout = `package checkout

import (
	"context"
	"errors"
	"time"
)

// Limit is how long a charge may take.
const Limit = 5 * time.Second

// Slow makes a charge that took too long one that may be tried again.
func Slow(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrBusy
	}
	return err
}
`

// demoYours are your last edits: to a file of your own and to a file of the agent's.
var demoYours = map[string]string{
	"README.md":           "# shop-api\n\nThe checkout of a small shop. Payments are tried three times.\n",
	"checkout/timeout.go": demoTimeout + "\n// Is five seconds enough for the bank?\n",
}
