package cli

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/foreign/connect"
)

// blockedJSON is an agent that has the entries of stet and does not run them.
type blockedJSON struct {
	Agent string `json:"agent"`
	Why   string `json:"why"`
}

// blockedAgents returns the agents that do not report until their user does something.
// What cannot be found out is left to 'stet connect --list' and doctor.
func (a *app) blockedAgents(ctx context.Context) (out []blockedJSON) {
	found, err := a.lookAtAgents(ctx, nil, connectFlags{})
	if err != nil {
		return nil
	}
	for _, agent := range found {
		if agent.State == connect.Blocked {
			out = append(out, blockedJSON{agent.Name, agent.Why.Error()})
		}
	}
	return out
}

// agents reports each agent whose settings have entries of stet.
func (d *doctor) agents(ctx context.Context) {
	found, err := d.app.lookAtAgents(ctx, nil, connectFlags{})
	if err != nil {
		d.report("agents", "", err)
		return
	}
	for _, agent := range found {
		name := "agent " + agent.Name
		switch {
		case agent.State == connect.Blocked:
			d.report(name, "", agent.Why)
		case agent.State == connect.Outdated:
			d.report(name, "", fmt.Errorf("its settings run a different stet; 'stet connect %s' updates them", agent.Name))
		case agent.State == connect.Connected && agent.Last.IsZero():
			d.report(name, "connected; no event yet", nil)
		case agent.State == connect.Connected:
			d.report(name, "connected; last event "+when(agent.Last, now()), nil)
		}
	}
}
