package transcript

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// maxTruncated limits chains of truncated calls.
const maxTruncated = 4

// partLimits are the limits of package conversation for steps.
var partLimits = &wirelimit.Limits{Bytes: 64 << 20, Memory: 256 << 20}

// resolver turns stored messages into those of this package.
type resolver struct {
	blobs blob.Store
	opts  Options
}

// tool describes a call.
func (r *resolver) tool(ctx context.Context, call *agentv1.ToolCall) (*Tool, *agentv1.ToolCall, error) {
	call, err := r.whole(ctx, call)
	if err != nil {
		return nil, nil, err
	}
	t := &Tool{Status: Pending}
	f := call.ProtoReflect().WhichOneof(call.ProtoReflect().Descriptor().Oneofs().ByName("tool"))
	if f == nil {
		r.unknown(call, t)
	} else {
		t.Name = toolName(string(f.Name()))
		known(t, call.ProtoReflect().Get(f).Message())
		if err := r.detail(ctx, t, call); err != nil {
			return nil, nil, err
		}
	}
	if r.opts.WithoutHeavyOutput {
		t.lighten()
	}
	return t, call, nil
}

// whole returns the full call of a truncated one.
func (r *resolver) whole(ctx context.Context, call *agentv1.ToolCall) (*agentv1.ToolCall, error) {
	for range maxTruncated {
		cut := call.GetTruncatedToolCall()
		if cut == nil || len(cut.OriginalStepBlobId) == 0 {
			return call, nil
		}
		data, err := r.blob(ctx, cut.OriginalStepBlobId)
		if err != nil {
			return nil, fmt.Errorf("read truncated step: %w", err)
		}
		step := new(agentv1.ConversationStep)
		if err := wirelimit.Unmarshal(data, step, partLimits); err != nil {
			return nil, fmt.Errorf("read truncated step: %w", err)
		}
		if step.GetToolCall() == nil {
			return nil, fmt.Errorf("read truncated step: %w: it is not a tool call", wirelimit.ErrMalformed)
		}
		call = step.GetToolCall()
	}
	return nil, fmt.Errorf("read truncated step: %w: a chain of more than %d", wirelimit.ErrMalformed, maxTruncated)
}

func (r *resolver) blob(ctx context.Context, id []byte) ([]byte, error) {
	parsed, err := blob.IDFromBytes(id)
	if err != nil {
		return nil, err
	}
	if r.blobs == nil {
		return nil, fmt.Errorf("%w: blob %s (no store)", blob.ErrNotFound, parsed.Short())
	}
	return r.blobs.Get(ctx, parsed)
}

// text reads a blob as text.
func (r *resolver) text(ctx context.Context, id []byte) (string, error) {
	data, err := r.blob(ctx, id)
	return strings.ToValidUTF8(string(data), "\ufffd"), err
}

// unknown describes a call of a tool without a definition.
func (r *resolver) unknown(call *agentv1.ToolCall, t *Tool) {
	t.Name = "Unknown"
	raw := call.ProtoReflect().GetUnknown()
	for len(raw) > 0 {
		num, typ, n := protowire.ConsumeField(raw)
		if n < 0 {
			return
		}
		field := raw[:n]
		raw = raw[n:]
		if typ != protowire.BytesType {
			continue
		}
		name, ok := otherTools[int32(num)]
		if !ok && t.Name != "Unknown" {
			continue
		}
		t.Name = toolName(name)
		if !ok {
			t.Name = fmt.Sprintf("Tool%d", num)
		}
		_, _, tag := protowire.ConsumeTag(field)
		body, _ := protowire.ConsumeBytes(field[tag:])
		t.guess(body)
	}
}

// guess reads the arguments and the result of an unknown call. All tools have
// them in fields 1 and 2, and success is the first kind of result.
func (t *Tool) guess(body []byte) {
	fields, ok := guess(body, 0)
	if !ok {
		return
	}
	t.Input, t.Output, t.Status = fields["1"], "", Pending
	if result, ok := fields["2"]; ok {
		t.Output, t.Status = indented(result), Succeeded
		if arms, ok := result.(map[string]any); ok && len(arms) > 0 && arms["1"] == nil {
			t.Status = Failed
		}
	}
}

// known describes what all defined calls have in common.
func known(t *Tool, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	if f := fields.ByName("args"); f != nil && m.Has(f) {
		args := m.Get(f).Message()
		t.Input = plain(args)
		t.Path = stringField(args, "path", "file_path", "target_directory")
	}
	f := fields.ByName("result")
	if f == nil || !m.Has(f) {
		return
	}
	result := m.Get(f).Message()
	t.Status = Succeeded
	one := result.Descriptor().Oneofs().ByName("result")
	if one == nil {
		return
	}
	arm := result.WhichOneof(one)
	if arm == nil {
		t.Status = Running
		return
	}
	t.Status = statusOf(string(arm.Name()))
	body := result.Get(arm).Message()
	if t.Path == "" {
		t.Path = stringField(body, "path", "file_path")
	}
	t.Output = stringField(body, "error", "error_message", "reason", "client_visible_error")
	if t.Output == "" && t.Status == Failed {
		t.Output = strings.ReplaceAll(string(arm.Name()), "_", " ")
	}
	if t.Output == "" {
		if fields := plain(body); len(fields.(map[string]any)) > 0 {
			t.Output = indented(fields)
		}
	}
}

func statusOf(arm string) Status {
	switch arm {
	case "success", "complete":
		return Succeeded
	case "rejected", "permission_denied", "read_permission_denied", "write_permission_denied":
		return Rejected
	case "timeout":
		return TimedOut
	case "async", "still_running":
		return Running
	}
	return Failed
}

// stringField returns the first of the named string fields that is not empty.
func stringField(m protoreflect.Message, names ...protoreflect.Name) string {
	for _, name := range names {
		f := m.Descriptor().Fields().ByName(name)
		if f != nil && f.Kind() == protoreflect.StringKind && !f.IsList() {
			if s := m.Get(f).String(); s != "" {
				return s
			}
		}
	}
	return ""
}
