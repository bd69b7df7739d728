package gen_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

// describe writes a field the way the table does.
func describe(f protoreflect.FieldDescriptor) row {
	r := row{no: f.Number(), name: string(f.Name()), typ: typeName(f)}
	switch oneof := f.ContainingOneof(); {
	case f.IsMap():
		r.label = "map"
		r.typ = "map<" + typeName(f.MapKey()) + ", " + typeName(f.MapValue()) + ">"
	case f.IsList():
		r.label = "repeated"
	case f.HasOptionalKeyword():
		r.label = "optional"
	case oneof != nil:
		r.label = "oneof " + string(oneof.Name())
	}
	return r
}

func typeName(f protoreflect.FieldDescriptor) string {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return string(f.Message().FullName())
	case protoreflect.EnumKind:
		return string(f.Enum().FullName())
	default:
		return f.Kind().String()
	}
}

func TestEveryDefinedFieldIsInTheTable(t *testing.T) {
	tab := readTable(t)
	messages, fields := 0, 0
	rangeMessages(wirePackages, func(m protoreflect.MessageDescriptor) {
		messages++
		rows, ok := tab[m.FullName()]
		if !ok {
			t.Errorf("%s is not in the table", m.FullName())
		}
		for i := range m.Fields().Len() {
			fields++
			if got := describe(m.Fields().Get(i)); !slices.Contains(rows, got) {
				t.Errorf("%s: got field %+v, want one of %+v", m.FullName(), got, withNumber(rows, got.no))
			}
		}
	})
	// A registry that the walk does not reach would make the test pass.
	if messages < 500 || fields < 1900 {
		t.Errorf("got %d messages with %d fields, want at least 500 with 1900", messages, fields)
	}
}

func withNumber(rows []row, no protoreflect.FieldNumber) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.no != no })
}

func TestEveryTableFieldIsDefinedOrOmitted(t *testing.T) {
	tab, omitted := readTable(t), readOmitted(t)
	rangeMessages(wirePackages, func(m protoreflect.MessageDescriptor) {
		out := omitted[m.FullName()]
		for _, r := range tab[m.FullName()] {
			defined := m.Fields().ByNumber(r.no) != nil
			switch {
			case defined && out[r.no]:
				t.Errorf("%s: field %d %s is defined and listed as omitted", m.FullName(), r.no, r.name)
			case !defined && !out[r.no]:
				t.Errorf("%s: field %d %s is neither defined nor listed as omitted", m.FullName(), r.no, r.name)
			}
		}
		for no := range out {
			if len(withNumber(tab[m.FullName()], no)) == 0 {
				t.Errorf("%s: omitted field %d is not in the table", m.FullName(), no)
			}
		}
	})
}

func TestEnumsEqualTheTable(t *testing.T) {
	tab := readTable(t)
	enums := 0
	rangeEnums(wirePackages, func(e protoreflect.EnumDescriptor) {
		enums++
		var got []row
		for i := range e.Values().Len() {
			v := e.Values().Get(i)
			got = append(got, row{no: protoreflect.FieldNumber(v.Number()), name: string(v.Name())})
		}
		if want := tab[e.FullName()]; !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", e.FullName(), got, want)
		}
	})
	if enums < 30 {
		t.Errorf("got %d enums, want at least 30", enums)
	}
}

func TestRequiredTypesAreDefined(t *testing.T) {
	names := readLines(t, "testdata/complete.txt")
	if len(names) < 149 {
		t.Fatalf("got %d required types, want at least 149", len(names))
	}
	for _, name := range names {
		if _, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name)); err != nil {
			t.Errorf("find %s: %v", name, err)
		}
	}
}

// TestReusedTagsAreReserved holds the tags that releases used with different
// types: a definition would read one release's value as another's.
func TestReusedTagsAreReserved(t *testing.T) {
	for name, no := range map[protoreflect.FullName]protoreflect.FieldNumber{
		"agent.v1.ConversationAction":        9,
		"aiserver.v1.CloudAgentErrorDetails": 3,
	} {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if m := d.(protoreflect.MessageDescriptor); !m.ReservedRanges().Has(no) {
			t.Errorf("%s: field %d is not reserved", name, no)
		}
	}
}

func TestMetadataVersionsThatWeKnow(t *testing.T) {
	got := aiserverv1.CloudAgentStatePersistedMetadata_PersistedMetadataVersion(0).Descriptor().Values().Len()
	if want := 2; got != want { // unspecified and 1; a third needs a reader
		t.Errorf("got %d metadata versions, want %d", got, want)
	}
}

func TestServices(t *testing.T) {
	type method struct {
		in, out                  string
		clientStream, servStream bool
	}
	want := map[protoreflect.FullName]method{
		"agent.v1.AgentService.Run": {"AgentClientMessage", "AgentServerMessage", true, true},
		"aiserver.v1.BackgroundComposerService.StreamConversation": {
			"StreamConversationRequest", "StreamConversationResponse", false, true},
		"aiserver.v1.BackgroundComposerService.GetLatestAgentConversationState": {
			"GetLatestAgentConversationStateRequest", "GetLatestAgentConversationStateResponse", false, false},
		"aiserver.v1.BackgroundComposerService.GetBlobForAgentKV": {
			"GetBlobForAgentKVRequest", "GetBlobForAgentKVResponse", false, false},
	}
	for name, want := range want {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		if err != nil {
			t.Errorf("find %s: %v", name, err)
			continue
		}
		m := d.(protoreflect.MethodDescriptor)
		got := method{string(m.Input().Name()), string(m.Output().Name()), m.IsStreamingClient(), m.IsStreamingServer()}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestFilesNameTheirGoPackage(t *testing.T) {
	want := map[protoreflect.FullName]string{
		"agent.v1":    "github.com/stet-dev/stet/gen/agent/v1;agentv1",
		"aiserver.v1": "github.com/stet-dev/stet/gen/aiserver/v1;aiserverv1",
		"anyrun.v1":   "github.com/stet-dev/stet/gen/anyrun/v1;anyrunv1",
		"stet.v1":     "github.com/stet-dev/stet/gen/stet/v1;stetv1",
	}
	for pkg, want := range want {
		files := 0
		protoregistry.GlobalFiles.RangeFilesByPackage(pkg, func(f protoreflect.FileDescriptor) bool {
			files++
			got := f.Options().(*descriptorpb.FileOptions).GetGoPackage()
			if syntax := protodesc.ToFileDescriptorProto(f).GetSyntax(); got != want || syntax != "proto3" {
				t.Errorf("%s: got %q in %q, want %q in %q", f.Path(), got, syntax, want, "proto3")
			}
			return true
		})
		if files == 0 {
			t.Errorf("%s: no files", pkg)
		}
	}
}
