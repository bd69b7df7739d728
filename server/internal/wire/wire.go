// Package wire holds what all services of the server have in common: the limits of a
// message, and how lists, texts and damage are encoded in one.
//
//	return wire.Fitting(req.Msg.GetLimit(), func(limit int) (*stetv1.ListResponse, error) {
//		… // a page of at most limit entries
//	})
package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

const (
	// MaxMessage bounds one message, before it is parsed.
	MaxMessage = 4 << 20
	// MaxUnary is the number of bytes of a blob in an answer, with room for what
	// surrounds it.
	MaxUnary = MaxMessage - 1<<10
	// PageLimit is the most entries of a page.
	PageLimit = 1000
)

// Valid makes text of a name or a line, which need not be any.
func Valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// PageSize returns how many entries of a list are given where so many were asked for.
func PageSize(asked uint32) int {
	if asked == 0 || asked > PageLimit {
		return PageLimit
	}
	return int(asked)
}

// Fitting makes a page by list, with ever smaller limits until it fits into a message:
// an entry is as large as its writer made it. Limit 0 is the default of the list.
func Fitting[T any, M interface {
	*T
	proto.Message
}](limit uint32, list func(limit int) (M, error)) (*connect.Response[T], error) {
	for limit := int(min(limit, PageLimit)); ; limit /= 2 {
		res, err := list(limit)
		if err != nil {
			return nil, err
		}
		if limit == 1 || proto.Size(res) <= MaxMessage/2 {
			return connect.NewResponse((*T)(res)), nil
		}
		if limit == 0 {
			limit = PageLimit
		}
	}
}

// Damaged names the entries of a list that cannot be read.
func Damaged(damaged []conversation.Unreadable) []*stetv1.Unreadable {
	var out []*stetv1.Unreadable
	for _, bad := range damaged {
		out = append(out, &stetv1.Unreadable{Id: Valid(bad.ID), Detail: Valid(bad.Err.Error())})
	}
	return out
}

// ReadMessage reads a blob that fits into one message, and no more of a larger one. It
// closes r.
func ReadMessage(r io.ReadCloser, id blob.ID) (data []byte, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err = io.ReadAll(io.LimitReader(r, MaxUnary+1))
	if err == nil && len(data) > MaxUnary {
		err = fmt.Errorf("%w: %s has more than %d bytes, which is the most that one message holds; read it as a stream, by stet.v1.BlobService/Open", blob.ErrTooLarge, id, MaxUnary)
	}
	return data, err
}

// ParseKind reads the kind of a blob; none is a state.
func ParseKind(name string) (graph.Kind, error) {
	if name == "" {
		return graph.State, nil
	}
	for k := graph.Bytes; k.String() != "unknown kind"; k++ {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%q is not a kind of blob", name))
}
