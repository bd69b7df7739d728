package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// Names inside values that may have any form are not fields.
func TestAnyJSONHasNoUnknownFields(t *testing.T) {
	refused := errors.New("refused")
	md := (&agentv1.McpTools{}).ProtoReflect().Descriptor()
	for text, want := range map[string]error{
		`{"mcpTools": [{"name": "a", "inputSchema": {"type": "object", "x": [{"y": null}]}}]}`:  wirelimit.ErrMalformed,
		`{"mcpTools": [{"name": "a", "inputSchema": {"type": "object"}}, {"input": {}}]}`:       errUnknownField,
		`{"mcp_tools": [{"name": "a", "input_schema": [1, 2]}], "mcpTools": [], "mcpTool": []}`: errUnknownField,
	} {
		if err := explainJSON([]byte(text), md, refused); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", text, err, want)
		}
	}
}

func TestJSONIsMeasuredOutsideOfStrings(t *testing.T) {
	values := `{"a":[1` + strings.Repeat(",1", jsonValues-3) + `],"b":2}`
	for name, test := range map[string]struct {
		data string
		ok   bool
	}{
		"empty":                   {``, true},
		"as many as allowed":      {values, true},
		"one more":                {"[" + values, false},
		"as deep as allowed":      {strings.Repeat("[", jsonDepth), true},
		"deeper":                  {strings.Repeat("[", jsonDepth+1), false},
		"up and down":             {strings.Repeat("[]", 1000), true},
		"in a string":             {`{"a":"` + strings.Repeat("[{,", jsonValues) + `"}`, true},
		"after an escaped quote":  {`{"a":"\"` + strings.Repeat("[{,", jsonValues) + `"}`, true},
		"after a backslash":       {`{"a":"\\"` + strings.Repeat(",1", jsonValues) + `}`, false},
		"a string without an end": {`{"a":"` + strings.Repeat("[", jsonDepth+1), true},
		"ends in a backslash":     {`{"a":"\`, true},
	} {
		if err := checkJSON([]byte(test.data)); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// once counts how often it is encoded.
type once struct {
	*stetv1.GetAgentRequest
	data  []byte
	times int
}

func (o *once) Encoded(_ string, encode func() ([]byte, error)) (_ []byte, err error) {
	if o.data == nil {
		o.times++
		o.data, err = encode()
	}
	return o.data, err
}

// A message that streams share is encoded once, and no stream can change what the others
// get.
func TestSharedMessagesAreEncodedOnce(t *testing.T) {
	for _, codec := range []interface {
		Marshal(any) ([]byte, error)
		Unmarshal([]byte, any) error
	}{binary{}, text{"json"}} {
		m := &once{GetAgentRequest: &stetv1.GetAgentRequest{Id: "a"}}
		for range 3 {
			data, err := codec.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got := new(stetv1.GetAgentRequest)
			if err := codec.Unmarshal(data, got); err != nil || got.GetId() != "a" {
				t.Errorf("%T: got %v: %v", codec, got, err)
			}
			clear(data)
		}
		if m.times != 1 {
			t.Errorf("%T: encoded %d times", codec, m.times)
		}
	}
}
