package aiserverv1_test

import (
	"encoding/base64"
	"fmt"

	"google.golang.org/protobuf/proto"

	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

// The metadata row of a cloud agent is base64 of a small message.
func Example() {
	row := "CiBkVXYHwOsxHWxSepogRYRrnxCAA6Llb33OVaNLvjZSlRISMDAwMDAwMDAwMDAwMDAwOS0wGQAA/Vb+vHhCIAIoAQ=="
	raw, err := base64.StdEncoding.DecodeString(row)
	if err != nil {
		panic(err)
	}
	meta := new(aiserverv1.CloudAgentStatePersistedMetadata)
	if err := proto.Unmarshal(raw, meta); err != nil {
		panic(err)
	}
	fmt.Printf("%x\n", meta.GetCloudAgentStateBlobId()[:4])
	fmt.Println(meta.GetOffsetKey(), meta.GetWorkflowStatus())
	// Output:
	// 64557607
	// 0000000000000009-0 CLOUD_AGENT_WORKFLOW_STATUS_IDLE
}
