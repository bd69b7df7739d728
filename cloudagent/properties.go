package cloudagent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/stet-dev/stet/blob"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lane"
	"github.com/stet-dev/stet/kv"
)

// Properties are what lists and headings show about an agent. They are derived from a
// state when it is saved.
type Properties struct {
	PRURL      string
	AgentName  string
	BranchName string
	NumTurns   int
	BaseBranch string
	// OriginalRequestStart is zero if unknown.
	OriginalRequestStart time.Time
	InitialSource        aiserverv1.BackgroundComposerSource
	// ErrorMessage and ErrorCode are the error that the state names for the user.
	ErrorMessage, ErrorCode string
	// LastInteraction is the offset up to which the conversation of the state contains
	// the updates, as the state says.
	LastInteraction string
}

func propertiesOf(p *stetv1.AgentProperties) Properties {
	out := Properties{
		PRURL: p.GetPrUrl(), AgentName: p.GetAgentName(), BranchName: p.GetBranchName(), NumTurns: int(p.GetNumTurns()),
		BaseBranch: p.GetBaseBranch(), InitialSource: p.GetInitialSource(),
		ErrorMessage: p.GetErrorMessage(), ErrorCode: p.GetErrorCode(), LastInteraction: p.GetLastInteraction(),
	}
	if ms := p.GetOriginalRequestStartMs(); ms != 0 {
		out.OriginalRequestStart = time.UnixMilli(ms)
	}
	return out
}

// maxText is the longest text of a property, which is stored in a row.
const maxText = 8 << 10

// derive reads the properties from a state whose blobs are stored.
func (s *Store) derive(ctx context.Context, state *aiserverv1.CloudAgentState) (*stetv1.AgentProperties, error) {
	p := &stetv1.AgentProperties{
		NumTurns: uint32(len(state.GetConversationState().GetTurns())), BaseBranch: clip(state.GetBaseBranch()),
		OriginalRequestStartMs: state.GetOriginalRequestStartUnixMs(), InitialSource: state.GetInitialSource(),
		ErrorMessage:    clip(state.GetUserFacingErrorDetails().GetErrorMessage()),
		ErrorCode:       clip(state.GetUserFacingErrorDetails().GetErrorCode()),
		LastInteraction: clip(state.GetLastInteractionUpdateOffsetKey()),
	}
	for _, text := range []struct {
		id   []byte
		into *string
	}{{state.PrUrl, &p.PrUrl}, {state.AgentName, &p.AgentName}, {state.BranchName, &p.BranchName}} {
		if len(text.id) == 0 {
			continue
		}
		id, err := blob.IDFromBytes(text.id)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		data, err := s.blobs.Get(ctx, id)
		if errors.Is(err, blob.ErrNotFound) {
			return nil, &kv.MissingBlobsError{IDs: []blob.ID{id}}
		}
		if err != nil {
			return nil, err
		}
		*text.into = clip(string(data[:min(len(data), maxText+utf8.UTFMax)]))
	}
	return p, nil
}

// clip makes a text fit for a row: short and UTF-8.
func clip(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
		for len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
		if r, n := utf8.DecodeLastRuneInString(text); r == utf8.RuneError && n == 1 {
			text = text[:len(text)-1]
		}
	}
	if !utf8.ValidString(text) {
		return ""
	}
	return text
}

// Properties returns the properties of an agent's current state.
func (s *Store) Properties(ctx context.Context, agent string) (Properties, error) {
	if err := checkID("agent", agent); err != nil {
		return Properties{}, err
	}
	l := s.lane(agent)
	defer s.release(l)
	now, err := s.load(ctx, l)
	if err != nil {
		return Properties{}, err
	}
	if now.rec.Properties != nil || len(now.rec.State) == 0 {
		return propertiesOf(now.rec.Properties), nil
	}
	// An imported agent: its state has not been read yet.
	state, err := s.sharedState(ctx, agent, stateOf(now.rec))
	if err != nil {
		return Properties{}, err
	}
	p, err := s.derive(ctx, state)
	if err != nil {
		return Properties{}, fmt.Errorf("properties of agent %s: %w", agent, err)
	}
	return propertiesOf(p), nil
}

// Subscribe yields what is known about an agent, now and whenever any process changes
// its metadata, its status or its properties, until ctx is done or the caller stops.
// Quick successive changes may appear as one. Events that change nothing else are not
// reported; Stream yields them.
func (s *Store) Subscribe(ctx context.Context, agent string) iter.Seq2[Agent, error] {
	return func(yield func(Agent, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		key := keyspace.Agent(agent)
		hints := s.rows.Watch(ctx, kv.Range{Start: key, End: key + "\x00"})
		var last *Agent
		for {
			now, err := s.Get(ctx, agent)
			if err != nil {
				yield(Agent{}, err)
				return
			}
			if last == nil || !sameExceptLog(*last, now) {
				if !yield(now, nil) {
					return
				}
				last = &now
			}
			if err := lane.Wait(ctx, hints, s.opts.Poll); err != nil {
				yield(Agent{}, err)
				return
			}
		}
	}
}

// sameExceptLog reports whether two descriptions differ in nothing but new events.
func sameExceptLog(a, b Agent) bool {
	sameLabels := maps.Equal(a.Labels, b.Labels)
	for _, one := range []*Agent{&a, &b} {
		one.Head, one.Updated, one.Labels, one.Origin.Offset = Offset{}, time.Time{}, nil, ""
	}
	return sameLabels && reflect.DeepEqual(a, b)
}
