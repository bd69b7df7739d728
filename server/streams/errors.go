package streams

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/wirecode"
	"github.com/stet-dev/stet/stream"
)

// errRequest says that a request is not valid in the protocol.
var errRequest = fault.Named(fault.Invalid, "bad-request", "bad request")

func badRequest(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errRequest, fmt.Sprintf(format, args...))
}

// errEncoding says that the body of a request is encoded. Streams serve the bytes that
// they got, without a header that says how to decode them.
var errEncoding = fault.Named(fault.Unsupported, "content-encoding", "encoded bodies are not accepted")

// statuses are the answers of the protocol to the errors of package stream. The first
// match counts. Other errors are left to the server.
var statuses = []struct {
	err    error
	status int
}{
	{stream.ErrDataLoss, http.StatusInternalServerError},
	{stream.ErrGone, http.StatusGone},
	{stream.ErrNotFound, http.StatusNotFound},
	{stream.ErrExists, http.StatusConflict},
	{stream.ErrClosed, http.StatusConflict},
	{stream.ErrContentType, http.StatusConflict},
	{stream.ErrSeq, http.StatusConflict},
	{stream.ErrGap, http.StatusConflict},
	{stream.ErrFenced, http.StatusForbidden},
	{stream.ErrTooLarge, http.StatusRequestEntityTooLarge},
	{stream.ErrInvalid, http.StatusBadRequest},
	{errRequest, http.StatusBadRequest},
	{errMethod, http.StatusMethodNotAllowed},
	{errEncoding, http.StatusUnsupportedMediaType},
}

// statusOf returns the status for an error, 0 if it is not in the table.
func statusOf(r *http.Request, err error) int {
	for _, s := range statuses {
		if !errors.Is(err, s.err) {
			continue
		}
		if s.err == stream.ErrGone && r.Method == http.MethodPut {
			return http.StatusConflict // the path is in use, or the source cannot be forked
		}
		return s.status
	}
	return 0
}

// fail answers with an error: with the text and status of the protocol, and with the
// headers that name every error of the server.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(r, err)
	if status == 0 || status >= http.StatusInternalServerError {
		h.opts.Fail(w, r, err)
		return
	}
	var closed *stream.ClosedError
	if errors.As(err, &closed) {
		w.Header().Set(headerClosed, "true")
		w.Header().Set(headerNext, closed.Tail.String())
	}
	var producer *stream.ProducerError
	if errors.As(err, &producer) {
		if status == http.StatusForbidden {
			w.Header().Set(headerEpoch, strconv.FormatUint(producer.Epoch, 10))
		} else {
			w.Header().Set(headerExpected, strconv.FormatUint(producer.Expected, 10))
			w.Header().Set(headerReceived, strconv.FormatUint(producer.Received, 10))
		}
	}
	wirecode.Name(w.Header(), err)
	http.Error(w, err.Error(), status)
}
