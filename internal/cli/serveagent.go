package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/agentrun/openai"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/internal/private"
)

// demoLines is the default script of the scripted agent. It touches no files of the
// user.
var demoLines = [][]agentrun.Line{
	{
		{Think: "Somebody wants to see how this works."},
		{Todo: []string{"say hello", "look around", "say goodbye"}},
		{Say: "Hello. I am a scripted agent: whatever you say, I do this."},
		{Shell: "ls"},
		{Say: "That was a tool, which ran on your side. Everything is saved."},
	},
	{
		{Say: "You are back, and so am I: all that I know is in the conversation."},
	},
}

// serveAgent returns the agent service, or nil.
func serveAgent(all settings) (agentv1connect.AgentServiceHandler, error) {
	var agent agentrun.Agent
	var err error
	switch all.text("serve.agent") {
	case "scripted":
		agent, err = scriptedAgent(all.text("serve.agent_script"))
	case "openai":
		agent, err = openaiAgent(all)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return agentrun.NewService(agentrun.ServeOptions{Agent: agent}), nil
}

func scriptedAgent(path string) (agentrun.Agent, error) {
	if path == "" {
		return agentrun.NewScripted(demoLines...), nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the agent's script: %w", err)
	}
	var turns [][]agentrun.Line
	if err := json.Unmarshal(data, &turns); err != nil {
		return nil, usage(fmt.Errorf("the agent's script %s: %w", path, err))
	}
	return agentrun.NewScripted(turns...), nil
}

func openaiAgent(all settings) (agentrun.Agent, error) {
	address, model := all.text("serve.agent_url"), all.text("serve.agent_model")
	if address == "" || model == "" {
		return nil, usage(errors.New("--agent openai needs --agent-url and --agent-model"))
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return nil, usage(errors.New("--agent-url must be an http or https address without user and query; put keys into --agent-key-file"))
	}
	agent := &openai.Agent{URL: address, Model: model, Client: &http.Client{Timeout: 5 * time.Minute}}
	if path := all.text("serve.agent_key_file"); path != "" {
		key, err := private.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the agent's key: %w", err)
		}
		agent.Key = strings.TrimSpace(string(key))
	}
	return agent, nil
}
