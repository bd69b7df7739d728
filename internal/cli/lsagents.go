package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/cloudagent"
)

type cloudAgentJSON struct {
	Schema       string `json:"schema"`
	ID           string `json:"id"`
	Name         string `json:"name"`
	Status       string `json:"status"`
	Conversation string `json:"conversation"`
	Turns        int    `json:"turns"`
	Events       uint64 `json:"events"`
	Offset       string `json:"offset"`
	State        string `json:"state,omitempty"`
	CreatedAt    string `json:"created_at,omitempty"`
	UpdatedAt    string `json:"updated_at"`
	// Origin and OriginOffset are set for a copy.
	Origin       string `json:"origin,omitempty"`
	OriginOffset string `json:"origin_offset,omitempty"`
}

func cloudAgentInfo(agent cloudagent.Agent) cloudAgentJSON {
	out := cloudAgentJSON{
		Schema: "stet.cloudagent.v1", ID: agent.ID, Name: agentName(agent), Status: statusName(agent.Status), Conversation: agent.Conversation,
		Turns: agent.Properties.NumTurns, Events: agent.Head.Seq, Offset: agent.Head.String(),
		CreatedAt: stamp(agent.Created), UpdatedAt: stamp(agent.Updated),
		Origin: agent.Origin.Address, OriginOffset: agent.Origin.Offset,
	}
	if !agent.State.IsZero() {
		out.State = agent.State.String()
	}
	return out
}

func agentName(agent cloudagent.Agent) string {
	if agent.Name != "" {
		return agent.Name
	}
	return agent.Properties.AgentName
}

// statusName returns a status as people write it.
func statusName(s cloudagent.Status) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "CLOUD_AGENT_WORKFLOW_STATUS_"))
}

// lsAgents lists the agents of the store, copies included.
func (a *app) lsAgents(ctx context.Context, db *stet.DB, limit int) error {
	var agents []cloudagent.Agent
	var damaged []cloudagent.Unreadable
	page := cloudagent.Page{Limit: 1000}
	for {
		list, err := db.Agents().List(ctx, page)
		if err != nil {
			return err
		}
		agents, damaged = append(agents, list.Agents...), append(damaged, list.Damaged...)
		if page.After = list.Next; page.After == "" || limit > 0 && len(agents) >= limit {
			break
		}
	}
	if limit > 0 && len(agents) > limit {
		agents = agents[:limit]
	}
	if err := a.printCloudAgents(agents, len(damaged)); err != nil {
		return err
	}
	var errs []error
	for _, bad := range damaged {
		errs = append(errs, fmt.Errorf("%s: %w", bad.ID, bad.Err))
	}
	return damageError("agent", errs)
}

func (a *app) printCloudAgents(agents []cloudagent.Agent, damaged int) error {
	if a.json {
		for _, agent := range agents {
			if err := a.printJSON(cloudAgentInfo(agent)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(agents)+damaged == 0 {
		a.say("no agents yet")
		return nil
	}
	_, err := fmt.Fprint(a.out, a.cloudAgentTable(agents))
	return err
}

func (a *app) cloudAgentTable(agents []cloudagent.Agent) string {
	p, now := a.paint(), time.Now()
	var rows [][]string
	for _, agent := range agents {
		about := agentName(agent)
		if agent.Origin.Address != "" {
			about = strings.TrimSpace(about + "  copy of " + agent.Origin.Address)
		}
		rows = append(rows, []string{
			printable(agent.ID), when(agent.Updated, now), statusName(agent.Status), plural(int64(agent.Head.Seq), "event"), printable(about),
		})
	}
	widths := columnWidths(rows, 4)
	var text strings.Builder
	for _, row := range rows {
		left := a.room()
		for i, width := range widths {
			cell := pad(row[i], width)
			left -= width + 2
			switch i {
			case 0:
				cell = p.yellow(cell)
			case 1, 3:
				cell = p.dim(cell)
			}
			text.WriteString(cell + "  ")
		}
		text.WriteString(clip(row[4], max(left, 20)) + "\n")
	}
	return text.String()
}
