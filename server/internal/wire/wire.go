// Package wire holds the parts that all services of the server share: the limits of a
// message, and how lists, texts and damage are encoded in one.
//
//	return wire.Fitting(req.GetLimit(), func(limit int) (*stetv1.ListResponse, error) {
//		… // a page of at most limit entries
//	})
package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

const (
	// MaxMessage limits one message, before it is parsed.
	MaxMessage = 4 << 20
	// MaxUnary is the maximum size of a blob in an answer, with room for the envelope.
	MaxUnary = MaxMessage - 1<<10
	// PageLimit is the maximum number of entries of a page.
	PageLimit = 1000
)

// Valid converts a name or a line to valid UTF-8.
func Valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// PageSize returns the size of a page for a requested size.
func PageSize(asked uint32) int {
	if asked == 0 || asked > PageLimit {
		return PageLimit
	}
	return int(asked)
}

// Fitting makes a page with list, with decreasing limits until it fits into a
// message, because entries can be large. Limit 0 is the default of the list.
func Fitting[M proto.Message](limit uint32, list func(limit int) (M, error)) (M, error) {
	for limit := int(min(limit, PageLimit)); ; limit /= 2 {
		res, err := list(limit)
		if err != nil || limit == 1 || proto.Size(res) <= MaxMessage/2 {
			return res, err
		}
		if limit == 0 {
			limit = PageLimit
		}
	}
}

// Damaged lists the entries of a list that cannot be read.
func Damaged(damaged []conversation.Unreadable) []*stetv1.Unreadable {
	var out []*stetv1.Unreadable
	for _, bad := range damaged {
		out = append(out, &stetv1.Unreadable{Id: Valid(bad.ID), Detail: Valid(bad.Err.Error())})
	}
	return out
}

// ReadMessage reads a blob that fits into one message, and fails for a larger one. It
// closes r.
func ReadMessage(r io.ReadCloser, id blob.ID) (data []byte, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err = io.ReadAll(io.LimitReader(r, MaxUnary+1))
	if err == nil && len(data) > MaxUnary {
		err = fmt.Errorf("%w: %s has more than %d bytes, the limit of one message; read it as a stream with stet.v1.BlobService/Open", blob.ErrTooLarge, id, MaxUnary)
	}
	return data, err
}

// ParseKind parses the kind of a blob; the empty name means a state.
func ParseKind(name string) (graph.Kind, error) {
	if name == "" {
		return graph.State, nil
	}
	for k := graph.Bytes; k.String() != "unknown kind"; k++ {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, Error(ErrArgument, "unknown kind of blob %q", name)
}
