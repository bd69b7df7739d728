package jsoncheckpoint_test

import (
	"encoding/json"
	"fmt"

	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
)

func Example() {
	row := `{"files": [{"uri": "file:///w/a.txt", "originalModelDiffWrtV0": [
		{"original": {"startLineNumber": 2, "endLineNumberExclusive": 2}, "modified": ["inserted"]}]}]}`
	cp := new(jsoncheckpoint.Checkpoint)
	if err := json.Unmarshal([]byte(row), cp); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cp.Files[0].URI)
	fmt.Println(cp.Files[0].Text("one\ntwo"))
	// Output:
	// file:///w/a.txt
	// one
	// inserted
	// two
}
