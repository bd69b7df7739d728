package graph_test

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

func ExampleRefs() {
	archive := &agentv1.ConversationSummaryArchive{
		SummarizedMessages: [][]byte{blob.Sum([]byte("first")).Bytes()},
		SummaryMessage:     blob.Sum([]byte("in short")).Bytes(),
	}
	data, _ := proto.Marshal(archive)
	refs, err := graph.Refs(graph.Archive, data)
	for _, r := range refs {
		fmt.Println(r.Field, r.Kind, r.ID.Short())
	}
	fmt.Println(err)
	// Output:
	// summarized_messages prompt a7937b64b8ca
	// summary_message prompt 8fabd7e1bc5d
	// <nil>
}
