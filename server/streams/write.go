package streams

import (
	"net/http"
	"strconv"

	"github.com/stet-dev/stet/stream"
)

func (h *handler) create(w http.ResponseWriter, r *http.Request, path string) error {
	config, err := configOf(r)
	if err != nil {
		return err
	}
	data, end, err := h.body(w, r)
	if err != nil {
		return err
	}
	defer end()
	info, created, err := h.store.Create(r.Context(), path, config, data)
	if err != nil {
		return err
	}
	if created && len(data) > 0 {
		h.grown(r.Context(), path)
	}
	describe(w.Header(), info)
	if !created {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	w.Header().Set("Location", origin(r)+r.URL.EscapedPath())
	w.WriteHeader(http.StatusCreated)
	return nil
}

func (h *handler) append(w http.ResponseWriter, r *http.Request, path string) error {
	producer, err := producerOf(r)
	if err != nil {
		return err
	}
	data, end, err := h.body(w, r)
	if err != nil {
		return err
	}
	defer end()
	done, err := h.store.Append(r.Context(), path, stream.Append{
		ContentType: r.Header.Get("Content-Type"), Data: data, Seq: r.Header.Get(headerSeq), Producer: producer, Close: closing(r),
	})
	if err != nil {
		return err
	}
	if len(data) > 0 && !done.Duplicate {
		h.grown(r.Context(), path)
	}
	w.Header().Set(headerNext, done.Tail.String())
	if done.Closed {
		w.Header().Set(headerClosed, "true")
	}
	status := http.StatusNoContent
	if producer != nil {
		w.Header().Set(headerEpoch, strconv.FormatUint(producer.Epoch, 10))
		w.Header().Set(headerProducerSeq, strconv.FormatUint(done.ProducerSeq, 10))
		if !done.Duplicate && len(data) > 0 {
			status = http.StatusOK
		}
	}
	w.WriteHeader(status)
	return nil
}
