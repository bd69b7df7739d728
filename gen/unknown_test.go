package gen_test

import (
	"bytes"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

var deterministic = proto.MarshalOptions{Deterministic: true}

// strangers are fields of every wire type under numbers that nobody uses, as a
// later release would write them.
var strangers = func() []byte {
	var b []byte
	b = protowire.AppendTag(b, 100001, protowire.VarintType)
	b = protowire.AppendVarint(b, 1<<63|42)
	b = protowire.AppendTag(b, 100002, protowire.Fixed32Type)
	b = protowire.AppendFixed32(b, 0xfeedface)
	b = protowire.AppendTag(b, 100003, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, 0xfeedfacecafebeef)
	b = protowire.AppendTag(b, 100004, protowire.BytesType)
	b = protowire.AppendBytes(b, []byte{0xff, 0x00, 0x80})
	b = protowire.AppendTag(b, 100005, protowire.BytesType)
	return protowire.AppendBytes(b, nil)
}()

// fill sets every field of m down to depth levels and adds strangers on every
// level. Of a oneof it sets the arm that arm selects, counted round.
func fill(m protoreflect.Message, depth, arm int) {
	m.SetUnknown(bytes.Clone(strangers))
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() && o.Fields().Get(arm%o.Fields().Len()) != f {
			continue
		}
		if depth == 0 && f.Message() != nil { // maps too: their entry is a message
			continue
		}
		switch {
		case f.IsMap():
			entries := m.Mutable(f).Map()
			entries.Set(sample(f.MapKey(), protoreflect.Value{}, 0).MapKey(), sample(f.MapValue(), entries.NewValue(), depth))
		case f.IsList():
			list := m.Mutable(f).List()
			list.Append(sample(f, list.NewElement(), depth))
		default:
			m.Set(f, sample(f, m.NewField(f), depth))
		}
	}
}

// sample is a value for f that is not the default. For a message it fills the
// fresh one that it is given.
func sample(f protoreflect.FieldDescriptor, fresh protoreflect.Value, depth int) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.MessageKind:
		fill(fresh.Message(), depth-1, 0)
		return fresh
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(9999) // a value of a later release
	case protoreflect.Int32Kind, protoreflect.Sint32Kind:
		return protoreflect.ValueOfInt32(-7)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(-1 << 40)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1 << 31)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(1 << 63)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(0.5)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(-0.25)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{0, 0xff})
	default:
		return protoreflect.ValueOfString("s")
	}
}

// countStrangers reports in how many messages of the tree under m the strangers
// are complete, and how many messages there are.
func countStrangers(m protoreflect.Message) (whole, all int) {
	all = 1
	if bytes.Equal(m.GetUnknown(), strangers) {
		whole = 1
	}
	add := func(v protoreflect.Value) {
		w, a := countStrangers(v.Message())
		whole, all = whole+w, all+a
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap() && f.MapValue().Message() == nil:
		case f.IsMap():
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { add(v); return true })
		case f.IsList():
			for i := range v.List().Len() {
				add(v.List().Get(i))
			}
		default:
			add(v)
		}
		return true
	})
	return whole, all
}

// modify changes a part of m as a program would that knows only our fields: it
// clears the first plain field, if there is one.
func modify(m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		if f := m.Descriptor().Fields().Get(i); f.Message() == nil {
			m.Clear(f)
			return
		}
	}
}

func TestUnknownFieldsSurviveReadModifyWrite(t *testing.T) {
	messages := 0
	rangeMessages(append(slices.Clone(wirePackages), "stet.v1"), func(d protoreflect.MessageDescriptor) {
		messages++
		mt, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
		if err != nil {
			t.Fatal(err)
		}
		for arm := range arms(d) {
			checkSurvival(t, mt, arm)
		}
	})
	if messages < 500 {
		t.Errorf("got %d messages, want at least 500", messages)
	}
}

// arms is the size of the largest oneof, at least 1.
func arms(d protoreflect.MessageDescriptor) int {
	n := 1
	for i := range d.Oneofs().Len() {
		n = max(n, d.Oneofs().Get(i).Fields().Len())
	}
	return n
}

func checkSurvival(t *testing.T, mt protoreflect.MessageType, arm int) {
	t.Helper()
	name := mt.Descriptor().FullName()
	written := mt.New()
	fill(written, 2, arm)
	read := reread(t, written)
	want := encode(t, written)
	if got := encode(t, read); !bytes.Equal(got, want) {
		t.Errorf("%s, arm %d: got %x after a read, want %x", name, arm, got, want)
	}
	modify(read)
	last := reread(t, read)
	whole, all := countStrangers(last)
	if _, before := countStrangers(read); whole != all || all != before {
		t.Errorf("%s, arm %d: got unknown fields in %d of %d messages, want all of %d", name, arm, whole, all, before)
	}
}

func encode(t *testing.T, m protoreflect.Message) []byte {
	t.Helper()
	b, err := deterministic.Marshal(m.Interface())
	if err != nil {
		t.Fatalf("marshal %s: %v", m.Descriptor().FullName(), err)
	}
	return b
}

func reread(t *testing.T, m protoreflect.Message) protoreflect.Message {
	t.Helper()
	fresh := m.New()
	if err := proto.Unmarshal(encode(t, m), fresh.Interface()); err != nil {
		t.Fatalf("unmarshal %s: %v", m.Descriptor().FullName(), err)
	}
	return fresh
}

// TestUndefinedToolSurvives reads a step whose tool we do not define: the tool
// is an arm of a oneof that the definition lacks.
func TestUndefinedToolSurvives(t *testing.T) {
	const piEdit = 63
	var call []byte
	call = protowire.AppendTag(call, piEdit, protowire.BytesType)
	call = protowire.AppendBytes(call, []byte("\x0a\x03abc"))
	raw := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), call)

	step := new(agentv1.ConversationStep)
	if err := proto.Unmarshal(raw, step); err != nil {
		t.Fatal(err)
	}
	if step.GetToolCall() == nil || step.GetToolCall().GetTool() != nil {
		t.Errorf("got tool %v, want a call without a known tool", step.GetToolCall().GetTool())
	}
	step.GetToolCall().ToolCallId = proto.String("call")
	step = reread(t, step.ProtoReflect()).Interface().(*agentv1.ConversationStep)
	if got := step.GetToolCall().ProtoReflect().GetUnknown(); !bytes.Equal(got, call) {
		t.Errorf("got unknown fields %x, want %x", []byte(got), call)
	}
}

// TestFieldsOfAnotherWireTypeSurvive reads what older releases wrote under tags
// that now have another type.
func TestFieldsOfAnotherWireTypeSurvive(t *testing.T) {
	old := protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 1700000002000)
	for _, m := range []proto.Message{
		new(aiserverv1.CloudAgentStatePersistedMetadata), // timestamp_ms was an int64
		new(aiserverv1.CloudAgentErrorDetails),           // will_autoretry was a bool
	} {
		if err := proto.Unmarshal(old, m); err != nil {
			t.Errorf("unmarshal %T: %v", m, err)
			continue
		}
		if got := encode(t, m.ProtoReflect()); !bytes.Equal(got, old) {
			t.Errorf("%T: got %x, want %x", m, got, old)
		}
	}
}
