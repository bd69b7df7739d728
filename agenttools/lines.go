package agenttools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stet-dev/stet/fault"
)

// maxLine is the size of the longest message that is read.
const maxLine = 4 << 20

// lineTransport carries messages as lines of JSON. The library's transport ends the
// connection at the first line that is not a message; this one answers it with an
// error and continues.
type lineTransport struct {
	in  io.Reader
	out io.Writer
	log func(format string, args ...any)
}

// Connect begins to read.
func (t *lineTransport) Connect(context.Context) (mcp.Connection, error) {
	c := &lineConn{lineTransport: t, messages: make(chan jsonrpc.Message), closed: make(chan struct{}), calls: map[jsonrpc.ID]bool{}}
	go c.readAll()
	return c, nil
}

type lineConn struct {
	*lineTransport
	messages chan jsonrpc.Message // closed at the end of in
	closed   chan struct{}
	once     sync.Once

	writing sync.Mutex // is held while a line is written

	mu    sync.Mutex
	calls map[jsonrpc.ID]bool // guarded by mu; not answered yet
	idle  chan struct{}       // guarded by mu; closed when there are none; nil without a waiter
}

// readAll reads until the input ends. Reading a terminal or a pipe cannot be
// interrupted, so it outlives Close until then.
func (c *lineConn) readAll() {
	defer close(c.messages)
	in := bufio.NewReaderSize(c.in, 64<<10)
	for {
		line, err := readLine(in)
		if msg := c.decode(line, err); msg != nil {
			select {
			case c.messages <- msg:
			case <-c.closed:
				return
			}
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return
		}
	}
}

var errLongLine = fault.New(fault.Invalid, "the line is longer than 4 MiB")

// readLine returns the next line without its end. It skips a line that is too long.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > maxLine && err == nil {
			return nil, errLongLine
		}
		return bytes.TrimSpace(line), err
	}
}

// decode returns the message of a line, or nil after it has answered a line that has
// none. It drops an incomplete message at the end of the input.
func (c *lineConn) decode(line []byte, err error) jsonrpc.Message {
	code, reason := int64(jsonrpc.CodeParseError), err
	if !errors.Is(err, errLongLine) {
		if len(line) == 0 {
			return nil
		}
		msg, bad := jsonrpc.DecodeMessage(line)
		if bad == nil {
			return msg
		}
		if err != nil {
			return nil
		}
		reason = bad
		if json.Valid(line) {
			code = jsonrpc.CodeInvalidRequest
		}
	}
	c.log("a line of input is not a message: %v", reason)
	c.answer(line, code, reason)
	return nil
}

// answer answers a line that is not a message with an error, under its id if it has one.
func (c *lineConn) answer(line []byte, code int64, reason error) {
	var call struct {
		ID any `json:"id"`
	}
	_ = json.Unmarshal(line, &call) // without an id it is null
	switch call.ID.(type) {
	case string, float64:
	default:
		call.ID = nil
	}
	data, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": call.ID, "error": map[string]any{"code": code, "message": reason.Error()},
	})
	if err == nil {
		err = c.write(data)
	}
	if err != nil {
		c.log("answer: %v", err)
	}
}

func (c *lineConn) write(data []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(data, '\n'))
	return err
}

// listen is a call that is answered when the connection ends.
const listen = "subscriptions/listen"

// Read returns the next message, and io.EOF at the end of the input or after Close.
// The library cancels running calls when the input ends, so Read returns io.EOF only
// after they have been answered.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	var wait <-chan struct{}
	messages := c.messages
	for {
		select {
		case msg, ok := <-messages:
			if !ok {
				messages, wait = nil, c.answered()
				continue
			}
			if call, ok := msg.(*jsonrpc.Request); ok && call.IsCall() && call.Method != listen {
				c.mu.Lock()
				c.calls[call.ID] = true
				c.mu.Unlock()
			}
			return msg, nil
		case <-wait:
			return nil, io.EOF
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// answered returns a channel that is closed when no call waits for its answer.
func (c *lineConn) answered() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := make(chan struct{})
	if len(c.calls) == 0 {
		close(idle)
	} else {
		c.idle = idle
	}
	return idle
}

// Write writes a message.
func (c *lineConn) Write(_ context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err == nil {
		err = c.write(data)
	}
	if answer, ok := msg.(*jsonrpc.Response); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.calls, answer.ID); c.idle != nil && len(c.calls) == 0 {
			close(c.idle)
			c.idle = nil
		}
	}
	return err
}

// Close ends the connection. It leaves the streams to the caller.
func (c *lineConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// SessionID is empty: there is one session.
func (c *lineConn) SessionID() string { return "" }
