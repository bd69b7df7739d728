package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// keptBytes is how much of each stream of a command is kept: its end, which mostly says
// how it went.
const keptBytes = 1 << 20

// keptOutput keeps what a command prints on its two streams. A nil one keeps nothing.
type keptOutput struct {
	mu      sync.Mutex // guards the rest; the streams are copied beside each other
	streams [2][]byte
	left    [2]int64 // bytes in front that were left out
}

// of returns the writer of a stream: 0 is the standard output, 1 the standard error.
func (k *keptOutput) of(stream int) io.Writer {
	return writerFunc(func(data []byte) (int, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		kept := append(k.streams[stream], data...)
		if over := len(kept) - keptBytes; over > 0 {
			k.left[stream] += int64(over)
			kept = append(kept[:0], kept[over:]...)
		}
		k.streams[stream] = kept
		return len(data), nil
	})
}

// text returns what was printed on a stream.
func (k *keptOutput) text(stream int) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	text := strings.ToValidUTF8(string(k.streams[stream]), "�")
	if n := k.left[stream]; n > 0 {
		return fmt.Sprintf("(%s before this left out)\n%s", byteSize(n), text)
	}
	return text
}

// any reports whether something was printed.
func (k *keptOutput) any() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.streams[0])+len(k.streams[1]) > 0
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(data []byte) (int, error) { return f(data) }
