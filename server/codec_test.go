package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
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
