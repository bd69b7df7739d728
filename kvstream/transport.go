package kvstream

import (
	"sync"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// DefaultMaxMessage is how large an encoded key-value message may be.
const DefaultMaxMessage = 4 << 20

// Sender is the outgoing half of a stream, such as a bidirectional stream of connect.
// Serve and Store call it from one goroutine at a time and give up ownership of the
// message. Send returns an error when the stream has ended.
type Sender[T any] interface {
	Send(*T) error
}

// Receiver is the incoming half of a stream. Receive returns io.EOF at the normal end
// and must return an error when the context of the stream ends. The receiver owns the
// message.
type Receiver[T any] interface {
	Receive() (*T, error)
}

// SendFunc is a function that is a Sender.
type SendFunc[T any] func(*T) error

// Send calls the function.
func (f SendFunc[T]) Send(msg *T) error { return f(msg) }

// ReceiveFunc is a function that is a Receiver.
type ReceiveFunc[T any] func() (*T, error)

// Receive calls the function.
func (f ReceiveFunc[T]) Receive() (*T, error) { return f() }

// Locked returns a sender that several goroutines may use, for streams that
// carry more than key-value messages.
func Locked[T any](out Sender[T]) Sender[T] {
	var mu sync.Mutex // a stream takes one message at a time
	return SendFunc[T](func(msg *T) error {
		mu.Lock()
		defer mu.Unlock()
		return out.Send(msg)
	})
}

// ServerFrames sends requests as frames of the server in AgentService.Run.
func ServerFrames(out Sender[agentv1.AgentServerMessage]) Sender[agentv1.KvServerMessage] {
	return SendFunc[agentv1.KvServerMessage](func(msg *agentv1.KvServerMessage) error {
		return out.Send(&agentv1.AgentServerMessage{
			Message: &agentv1.AgentServerMessage_KvServerMessage{KvServerMessage: msg},
		})
	})
}

// ClientFrames sends answers as frames of the client in AgentService.Run.
func ClientFrames(out Sender[agentv1.AgentClientMessage]) Sender[agentv1.KvClientMessage] {
	return SendFunc[agentv1.KvClientMessage](func(msg *agentv1.KvClientMessage) error {
		return out.Send(&agentv1.AgentClientMessage{
			Message: &agentv1.AgentClientMessage_KvClientMessage{KvClientMessage: msg},
		})
	})
}
