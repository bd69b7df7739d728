package access

import (
	"bufio"
	"errors"
	"io"
)

// eachLine calls fn for every line that is whole.
func eachLine(r io.Reader, fn func([]byte) error) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(line); err != nil {
			return err
		}
	}
}
