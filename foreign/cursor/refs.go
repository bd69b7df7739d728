package cursor

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
)

// refs returns the references in a blob. If the bytes do not match the kind, it
// returns the references before that point and an error that wraps ErrMalformed.
func refs(kind graph.Kind, data []byte) ([]graph.Ref, error) {
	found, err := graph.Refs(kind, data)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return found, err
}

// checkState reports whether data can be the encoding of a state.
func checkState(data []byte) error {
	_, err := refs(graph.State, data)
	return err
}

// stateLimits allow the largest states in practice: a hundred thousand entries of
// each kind.
var stateLimits = &wirelimit.Limits{Bytes: 32 << 20}

// unmarshal decodes a message after checking its size.
func unmarshal(data []byte, m proto.Message) error {
	err := wirelimit.Unmarshal(data, m, stateLimits)
	switch {
	case errors.Is(err, wirelimit.ErrExceeded):
		return fmt.Errorf("%w: %w", blob.ErrTooLarge, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}
