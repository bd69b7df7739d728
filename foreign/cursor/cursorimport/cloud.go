package cursorimport

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// agents imports the cloud agents.
func (im *importer) agents(ctx context.Context) error {
	for agent, err := range im.src.CloudAgents(ctx) {
		if err != nil {
			if fatal(ctx, err) {
				return err
			}
			im.skip(im.src.Path(), true, "the list of cloud agents ends early: %v", err)
			return nil
		}
		if im.opts.Conversations != nil && !im.opts.Conversations(cursor.Header{ID: agent.ID, Updated: agent.Saved}) {
			continue
		}
		im.progress(agent.ID)
		err := agent.Problem
		if err == nil {
			err = im.agent(ctx, agent)
		}
		if err != nil && fatal(ctx, err) {
			return err
		}
		if err != nil {
			im.skip(agent.ID+cursor.CloudAgentSuffix, true, "%v", err)
		}
	}
	return nil
}

// agent imports one cloud agent: its metadata, its state with all blobs, and its
// conversation.
func (im *importer) agent(ctx context.Context, agent cursor.CloudAgent) error {
	known, err := im.known(ctx, agent.ID)
	if err != nil {
		return err
	}
	if reason, err := im.cutOff(ctx, agent.ID, known != nil); reason != "" || err != nil {
		if err == nil {
			im.skip(agent.ID+cursor.CloudAgentSuffix, false, "%s", reason)
		}
		return err
	}
	key, value := keyspace.AgentMetadata(agent.ID), []byte(base64.StdEncoding.EncodeToString(agent.Raw))
	row, err := im.dst.Rows.Get(ctx, key)
	switch {
	case err == nil && bytes.Equal(row.Value, value):
		im.skip(agent.ID+cursor.CloudAgentSuffix, false, alreadyImported)
		return nil
	case err == nil && (known == nil || known.Labels[labelSource] != sourceName):
		im.skip(agent.ID+cursor.CloudAgentSuffix, false, "the store already has a cloud agent with this id that was not imported")
		return nil
	case err != nil && !errors.Is(err, kv.ErrNotFound):
		return target(err)
	}
	switch _, err := im.dst.Rows.Get(ctx, keyspace.Agent(agent.ID)); {
	case err == nil:
		im.skip(agent.ID+cursor.CloudAgentSuffix, false, continuedHere)
		return nil
	case !errors.Is(err, kv.ErrNotFound):
		return target(err)
	}
	ids, err := im.carrier().bring(ctx, graph.CloudState, agent.State, nil)
	if err != nil {
		return fmt.Errorf("state %s is incomplete: %w", agent.State.Short(), err)
	}
	root, err := im.agentRoot(ctx, agent)
	if err != nil {
		return err
	}
	w := newSourceWriter(im)
	w.keep(ids)
	source, err := w.end(ctx)
	if err != nil || im.opts.DryRun {
		im.result.Agents++
		return err
	}
	if err := im.agentConversation(ctx, agent, known, root); err != nil {
		return err
	}
	if _, err := im.anchor(ctx, agent.ID, agentMessage, source, w.parts); err != nil {
		return err
	}
	// The row comes last: it marks the import as complete.
	err = im.dst.Rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: key, Value: value}}, Refs: ids})
	if err == nil {
		im.result.Agents++
	}
	return target(err)
}

// agentRoot extracts the root of the conversation from an agent's state, or returns
// zero if there is none.
func (im *importer) agentRoot(ctx context.Context, agent cursor.CloudAgent) (blob.ID, error) {
	data, err := im.blobs.Get(ctx, agent.State)
	if err != nil {
		return blob.ID{}, err
	}
	root, err := cursor.StateInAgent(data)
	if err != nil || root == nil {
		return blob.ID{}, err
	}
	return root.ID, im.putNew(ctx, blob.Blob{ID: root.ID, Data: root.Data})
}

// agentConversation makes the agent's state the latest of its conversation. A
// conversation that was continued here stays unchanged.
func (im *importer) agentConversation(ctx context.Context, agent cursor.CloudAgent, known *conversation.Info, root blob.ID) error {
	j := &job{im: im, conv: &cursor.Conversation{Header: cursor.Header{ID: agent.ID, Created: agent.Saved, Updated: agent.Saved}}, known: known, kind: "cloud_agent"}
	if reason, err := im.reasonToSkip(ctx, known, ""); reason != "" || err != nil {
		return err
	}
	c, err := j.open(ctx)
	if err != nil {
		return err
	}
	if known != nil && known.Labels[labelKind] == "" { // it has a row, too, and was imported by it
		if err := im.store.SetLabel(ctx, agent.ID, labelKind, j.kind); err != nil {
			return target(err)
		}
	}
	if root.IsZero() || c.Head().Root == root {
		return nil
	}
	if own, err := im.src.Conversation(ctx, agent.ID); known != nil && err == nil && own.State != nil && own.Updated.After(agent.Saved) {
		return nil // its own row has a newer state
	}
	return j.save(ctx, c, restorePoint{root: root, at: agent.Saved})
}
