package client

import (
	"context"
	"iter"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/cloudagent"
)

// CopyOptions configure Copy; nil gives the defaults.
type CopyOptions struct {
	// MinBackoff, MaxBackoff and Silence are those of cloudagent.FollowOptions.
	MinBackoff, MaxBackoff, Silence time.Duration
}

// Copy follows an agent and keeps a copy of it in a store of this machine: its events,
// states and blobs, its status and the offset up to which it was followed. It yields each
// event when it is stored. Another call, also after a crash, continues there; see
// cloudagent.Store.Copy.
func (a *Agents) Copy(ctx context.Context, id string, to *cloudagent.Store, opts *CopyOptions) iter.Seq2[cloudagent.Event, error] {
	if opts == nil {
		opts = &CopyOptions{}
	}
	return func(yield func(cloudagent.Event, error) bool) {
		agent, err := a.Get(ctx, id)
		if err != nil {
			yield(cloudagent.Event{}, err)
			return
		}
		spec := cloudagent.Spec{ID: agent.GetId(), Name: agent.GetName(), Conversation: agent.GetConversation(), Status: agent.GetStatus()}
		follow := func(ctx context.Context, after string, cache blob.Store) iter.Seq2[cloudagent.Event, error] {
			return a.Follow(ctx, agent.GetId(), &FollowOptions{
				After: after, Cache: cache, MinBackoff: opts.MinBackoff, MaxBackoff: opts.MaxBackoff, Silence: opts.Silence,
			})
		}
		to.Copy(ctx, spec, cloudagent.CopyOptions{Address: a.c.base, Follow: follow})(yield)
	}
}
