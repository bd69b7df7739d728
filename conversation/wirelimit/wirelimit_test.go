package wirelimit_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

var stateType = (&agentv1.ConversationStateStructure{}).ProtoReflect().Descriptor()

func field(num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), content)
}

// nest returns a state with n subagents, each inside the one before.
func nest(n int) []byte {
	var state []byte
	for range n {
		entry := append(field(1, []byte("s")), field(2, field(1, state))...)
		state = field(16, entry)
	}
	return state
}

func TestCheckRefusesWhatExceedsALimit(t *testing.T) {
	repeat := func(n int, rec []byte) []byte { return []byte(strings.Repeat(string(rec), n)) }
	turn := field(8, make([]byte, 32))
	cases := []struct {
		name string
		data []byte
		want error
	}{
		{"empty", nil, nil},
		{"ten thousand turns and timings", append(repeat(10_000, turn), repeat(10_000, field(14, []byte{8, 1, 16, 1}))...), nil},
		{"hundred thousand turns", repeat(100_000, turn), nil},
		{"one turn too many", repeat(100_001, field(8, nil)), wirelimit.ErrExceeded},
		{"two million empty timings", repeat(1<<20, field(14, nil)), wirelimit.ErrExceeded},
		{"too long", make([]byte, 4<<20+1), wirelimit.ErrExceeded},
		{"32 nested subagents", nest(32), nil},
		{"33 nested subagents", nest(33), wirelimit.ErrTooDeep},
		{"5,000 nested subagents", nest(5000), wirelimit.ErrExceeded},
		{"path of 4,096", field(15, field(1, make([]byte, 4096))), nil},
		{"path of 4,097", field(15, field(1, make([]byte, 4097))), wirelimit.ErrExceeded},
		{"truncated", turn[:20], wirelimit.ErrMalformed},
		{"no tag", []byte{0xff}, wirelimit.ErrMalformed},
		{"unknown field", field(999, []byte("kept")), nil},
		{"many lists under the entry limit", repeat(200, field(16, field(2, field(1, repeat(5000, field(14, nil)))))), wirelimit.ErrExceeded},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := wirelimit.Check(c.data, stateType, nil); !errors.Is(err, c.want) {
				t.Errorf("Check = %v, want %v", err, c.want)
			}
		})
	}
}

func TestCheckCountsPackedNumbers(t *testing.T) {
	// google.protobuf has no packed field in our messages' closure, so count on a
	// descriptor that has one: the path of a source location.
	loc := append(field(1, make([]byte, 50)), field(2, make([]byte, 51))...)
	info := field(9, field(1, loc))
	md := fileDescriptorType()
	if err := wirelimit.Check(info, md, &wirelimit.Limits{Entries: 51}); err != nil {
		t.Errorf("51 numbers: %v", err)
	}
	if err := wirelimit.Check(info, md, &wirelimit.Limits{Entries: 50}); !errors.Is(err, wirelimit.ErrExceeded) {
		t.Errorf("51 numbers with a limit of 50: %v, want ErrExceeded", err)
	}
}

func TestHostileMessagesTakeLittleMemory(t *testing.T) {
	repeat := func(n int, rec []byte) []byte { return []byte(strings.Repeat(string(rec), n)) }
	hostile := map[string][]byte{
		"lists":    repeat(99_999, field(14, nil)),
		"maps":     repeat(99_999, field(15, nil)),
		"todo ids": repeat(99_999, field(3, nil)),
		"states":   repeat(4<<20/20, field(16, append(field(1, []byte("abc")), field(2, field(1, nil))...))),
		"merged":   repeat(4<<20/8, field(5, field(3, field(3, nil)))),
	}
	for name, data := range hostile {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var s agentv1.ConversationStateStructure
			err := wirelimit.Unmarshal(data, &s, nil)
			runtime.ReadMemStats(&after)
			if grown := after.HeapAlloc - before.HeapAlloc; int64(grown) > 64<<20 {
				t.Errorf("heap grew by %d MiB (err %v)", grown>>20, err)
			}
			runtime.KeepAlive(&s)
		})
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte{})
	f.Add(nest(3))
	f.Add(field(8, make([]byte, 32)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var limited, plain agentv1.ConversationStateStructure
		err := wirelimit.Unmarshal(data, &limited, nil)
		if perr := proto.Unmarshal(data, &plain); err == nil && perr != nil {
			t.Errorf("accepted what proto refuses: %v", perr)
		}
		if err == nil && !proto.Equal(&limited, &plain) {
			t.Error("parsed to something else")
		}
	})
}
