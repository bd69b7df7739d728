package agentrun

import (
	"context"
	"fmt"
	"sync"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// stateLimits limit a state and partLimits its parts, as package conversation does.
var (
	stateLimits = &wirelimit.Limits{Bytes: 32 << 20}
	partLimits  = &wirelimit.Limits{Bytes: 64 << 20, Memory: 256 << 20}
)

// encode encodes everything that this package hashes.
func encode(m proto.Message) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return data, nil
}

// load decodes a blob of a state into m.
func load(ctx context.Context, blobs blob.Store, field []byte, m proto.Message) error {
	id, err := blob.IDFromBytes(field)
	if err != nil {
		return fmt.Errorf("load %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	data, err := blobs.Get(ctx, id)
	if err == nil {
		err = wirelimit.Unmarshal(data, m, partLimits)
	}
	if err != nil {
		return fmt.Errorf("load %s %s: %w", m.ProtoReflect().Descriptor().Name(), id.Short(), err)
	}
	return nil
}

// messageIndex finds the ids of the user's messages in states. The content of an id
// never changes, so each turn is read once.
type messageIndex struct {
	blobs blob.Store

	mu    sync.Mutex        // guards what follows
	turns map[string]string // message id by the bytes of a turn's id
	users map[string]string // message id by the bytes of a message's id
}

func newMessageIndex(blobs blob.Store) *messageIndex {
	return &messageIndex{blobs: blobs, turns: make(map[string]string), users: make(map[string]string)}
}

// of returns the message id of a turn, empty for a turn without one.
func (x *messageIndex) of(ctx context.Context, turn []byte, old bool) (string, error) {
	x.mu.Lock()
	id, ok := x.turns[string(turn)]
	x.mu.Unlock()
	if ok {
		return id, nil
	}
	agentTurn := new(agentv1.AgentConversationTurnStructure)
	if old {
		if err := load(ctx, x.blobs, turn, agentTurn); err != nil {
			return "", err
		}
	} else {
		structure := new(agentv1.ConversationTurnStructure)
		if err := load(ctx, x.blobs, turn, structure); err != nil {
			return "", err
		}
		agentTurn = structure.GetAgentConversationTurn()
	}
	id, err := x.user(ctx, agentTurn.GetUserMessage())
	if err != nil {
		return "", err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.turns[string(turn)] = id
	return id, nil
}

// user returns the id of a message by the id of its blob.
func (x *messageIndex) user(ctx context.Context, field []byte) (string, error) {
	if len(field) == 0 {
		return "", nil
	}
	x.mu.Lock()
	id, ok := x.users[string(field)]
	x.mu.Unlock()
	if ok {
		return id, nil
	}
	msg := new(agentv1.UserMessage)
	if err := load(ctx, x.blobs, field, msg); err != nil {
		return "", err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.users[string(field)] = msg.GetMessageId()
	return msg.GetMessageId(), nil
}

// last returns the id of the latest message of a state, or "".
func (x *messageIndex) last(ctx context.Context, state *agentv1.ConversationStateStructure) (string, error) {
	for i := len(state.GetTurns()) - 1; i >= 0; i-- {
		id, err := x.of(ctx, state.Turns[i], false)
		if err != nil || id != "" {
			return id, err
		}
	}
	return "", nil
}

// atOnce is how many turns are read at once. New messages are in the last turns, so
// the first round usually finds them.
const atOnce = 16

// find reports which of ids the state contains. It looks at the newest turns first
// and stops when everything is found.
func (x *messageIndex) find(ctx context.Context, state *agentv1.ConversationStateStructure, ids []string) ([]bool, error) {
	found := make([]bool, len(ids))
	left := len(ids)
	turns := append(append([][]byte(nil), state.GetTurnsOld()...), state.GetTurns()...)
	olds := len(state.GetTurnsOld())
	for end := len(turns); end > 0 && left > 0; end -= atOnce {
		begin := max(0, end-atOnce)
		in := make([]string, end-begin)
		group, ctx := errgroup.WithContext(ctx)
		for i := begin; i < end; i++ {
			group.Go(func() (err error) {
				in[i-begin], err = x.of(ctx, turns[i], i < olds)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		for i, id := range ids {
			for _, have := range in {
				if !found[i] && id != "" && have == id {
					found[i] = true
					left--
				}
			}
		}
	}
	return found, nil
}

// maxMessageID is how long the id of a message may be to be part of a key.
const maxMessageID = 256

// keyableID returns an id if it can be part of a key, else "": the id comes from the
// peer, and an invalid one must not lose a state.
func keyableID(id string) string {
	if len(id) > maxMessageID || !utf8.ValidString(id) {
		return ""
	}
	for _, r := range id {
		if r < ' ' || r == 0x7f {
			return ""
		}
	}
	return id
}
