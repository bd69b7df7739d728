package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/agentrun/openai"
)

func ExampleAgent() {
	// Any endpoint that speaks the protocol; this one always says the same.
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"There is main.go."}}]}`))
	}))
	defer endpoint.Close()
	agent := &openai.Agent{URL: endpoint.URL + "/v1", Model: "any"}
	step, err := agent.Next(context.Background(), &agentrun.Turn{Number: 1})
	fmt.Println(step, err)
	// Output: {There is main.go.} <nil>
}
