package agentv1_test

import (
	"crypto/sha256"
	"fmt"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// A turn is stored as a structure that names its parts by their hashes.
func Example() {
	blobs := make(map[[32]byte][]byte)
	put := func(m proto.Message) []byte {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			panic(err)
		}
		id := sha256.Sum256(data)
		blobs[id] = data
		return id[:]
	}

	step := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
		AssistantMessage: &agentv1.AssistantMessage{Text: "Done."},
	}}
	turn := &agentv1.AgentConversationTurnStructure{
		UserMessage: put(&agentv1.UserMessage{Text: "Fix the test.", MessageId: "m1"}),
		Steps:       [][]byte{put(step)},
	}

	var said agentv1.ConversationStep
	if err := proto.Unmarshal(blobs[[32]byte(turn.GetSteps()[0])], &said); err != nil {
		panic(err)
	}
	fmt.Println(len(blobs), said.GetAssistantMessage().GetText())
	// Output: 2 Done.
}
