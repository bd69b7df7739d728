package wirelimit_test

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

func fileDescriptorType() protoreflect.MessageDescriptor {
	return (&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor()
}

func ExampleUnmarshal() {
	data := make([]byte, 64) // zero bytes are not a field
	var state agentv1.ConversationStateStructure
	err := wirelimit.Unmarshal(data, &state, &wirelimit.Limits{Bytes: 32})
	fmt.Println(err)
	// Output: message exceeds limits: 64 bytes; the limit is 32
}
