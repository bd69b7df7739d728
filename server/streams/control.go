package streams

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/wirecode"
	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/subscription"
)

// maxControl is the largest body of a request about subscriptions.
const maxControl = 1 << 20

// route is an address of a subscription: its id, what to do, and the rest.
type route struct{ id, action, rest string }

// routeOf returns the subscription that an address names.
func routeOf(u *url.URL) (route, bool) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), Prefix+control+"/subscriptions/")
	if !ok {
		return route{}, false
	}
	parts := strings.SplitN(rest, "/", 3)
	for i := range parts {
		text, err := url.PathUnescape(parts[i])
		if err != nil {
			return route{}, false
		}
		parts[i] = text
	}
	parts = append(parts, "", "")
	return route{id: parts[0], action: parts[1], rest: parts[2]}, parts[0] != ""
}

// grown wakes the subscriptions of a stream. The append is already stored, so an
// error here does not fail its request; the next append tries again.
func (h *handler) grown(ctx context.Context, path string) {
	if h.hooks == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	wakes, err := h.opts.Subscriptions.Grown(ctx, path)
	if err != nil {
		h.opts.Note(err)
	}
	h.hooks.deliver(wakes)
}

// control serves the addresses that are not streams.
func (h *handler) control(w http.ResponseWriter, r *http.Request) {
	at, ok := routeOf(r.URL)
	jwks := r.URL.Path == Prefix+control+"/jwks.json"
	if h.hooks == nil || !ok && !jwks {
		h.failControl(w, r, errNoAddress)
		return
	}
	h.hooks.resume(r.Context())
	var err error
	switch {
	case jwks:
		err = h.hooks.keys(w, r)
	case at.action == "":
		err = h.subscription(w, r, at)
	case at.action == "streams":
		err = h.membership(w, r, at)
	case at.rest == "" && r.Method == http.MethodPost:
		err = h.work(w, r, at)
	default:
		err = errMethod
	}
	if err != nil {
		h.failControl(w, r, err)
	}
}

var (
	// errMethod says that an address does not support a method.
	errMethod = fault.Named(fault.Unsupported, "unknown-method", "this address does not know the method")
	// errNoAddress says that there is nothing below the prefix of the control addresses.
	errNoAddress = fault.Under(subscription.ErrNotFound, "", "there is no such control address")
)

func (h *handler) subscription(w http.ResponseWriter, r *http.Request, at route) error {
	subs := h.opts.Subscriptions
	switch r.Method {
	case http.MethodPut:
		config, err := h.subscriptionOf(w, r)
		if err != nil {
			return err
		}
		sub, created, err := subs.Put(r.Context(), at.id, config)
		if err != nil {
			return err
		}
		status := http.StatusOK
		if created {
			status = http.StatusCreated
		}
		return h.writeSubscription(w, status, sub)
	case http.MethodGet:
		sub, err := subs.Get(r.Context(), at.id)
		if err != nil {
			return err
		}
		return h.writeSubscription(w, http.StatusOK, sub)
	case http.MethodDelete:
		err := h.opts.Remove(r.Context(), "subscription "+at.id, func() error { return subs.Delete(r.Context(), at.id) })
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		return err
	}
	return errMethod
}

// subscriptionOf reads the configuration of a subscription from a request.
func (h *handler) subscriptionOf(w http.ResponseWriter, r *http.Request) (subscription.Config, error) {
	var in struct {
		Type        string   `json:"type"`
		Pattern     string   `json:"pattern"`
		Streams     []string `json:"streams"`
		Webhook     struct{ URL string }
		WakeStream  string `json:"wake_stream"`
		LeaseTTL    *int64 `json:"lease_ttl_ms"`
		Description string `json:"description"`
	}
	if err := h.readStored(w, r, &in); err != nil {
		return subscription.Config{}, err
	}
	c := subscription.Config{
		Kind: in.Type, Pattern: in.Pattern, Streams: in.Streams, URL: in.Webhook.URL, WakeStream: in.WakeStream,
		Description: in.Description, Origin: origin(r), Owner: h.opts.Owner(r.Context()),
	}
	if in.LeaseTTL != nil {
		if *in.LeaseTTL <= 0 || *in.LeaseTTL > subscription.MaxLease.Milliseconds() {
			return subscription.Config{}, badRequest("lease_ttl_ms is %d; a lease lasts %d to %d", *in.LeaseTTL, subscription.MinLease.Milliseconds(), subscription.MaxLease.Milliseconds())
		}
		c.Lease = time.Duration(*in.LeaseTTL) * time.Millisecond
	}
	if c.Kind == subscription.Webhook && c.URL != "" {
		if err := checkHook(c.URL, h.opts.LocalHooks); err != nil {
			return subscription.Config{}, err
		}
	}
	return c, nil
}

// membership adds and removes streams.
func (h *handler) membership(w http.ResponseWriter, r *http.Request, at route) error {
	var err error
	switch {
	case r.Method == http.MethodPost && at.rest == "":
		var in struct{ Streams []string }
		if err = h.readStored(w, r, &in); err == nil && len(in.Streams) == 0 {
			err = badRequest("streams are needed")
		}
		if err == nil {
			err = h.opts.Subscriptions.Add(r.Context(), at.id, in.Streams...)
		}
	case r.Method == http.MethodDelete && at.rest != "":
		err = h.opts.Subscriptions.Remove(r.Context(), at.id, at.rest)
	default:
		err = errMethod
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// work serves workers: claims and answers for wakes.
func (h *handler) work(w http.ResponseWriter, r *http.Request, at route) error {
	var in struct {
		Worker     string
		WakeID     string `json:"wake_id"`
		Generation uint64
		Acks       []struct{ Stream, Path, Offset string }
		Done       bool
	}
	if _, err := readJSON(w, r, &in); err != nil {
		return err
	}
	if at.action == "claim" {
		return h.claim(w, r, at.id, in.Worker)
	}
	if at.action != "ack" && at.action != "callback" && at.action != "release" {
		return errMethod
	}
	generation, err := h.hooks.verify(r)
	if err != nil {
		return err
	}
	a := subscription.Answer{Wake: in.WakeID, Generation: in.Generation, Done: in.Done || at.action == "release"}
	for _, ack := range in.Acks {
		if ack.Stream == "" {
			ack.Stream = ack.Path
		}
		a.Acks = append(a.Acks, subscription.Ack{Path: ack.Stream, Offset: ack.Offset})
	}
	if at.action == "release" {
		a.Acks = nil
	}
	more, wakes, err := h.opts.Subscriptions.Answer(r.Context(), at.id, generation, a)
	if err != nil {
		return err
	}
	h.hooks.deliver(wakes)
	h.hooks.arm(r.Context(), at.id)
	if at.action == "release" {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return writeJSON(w, http.StatusOK, map[string]any{"ok": true, "next_wake": more})
}

func (h *handler) claim(w http.ResponseWriter, r *http.Request, id, worker string) error {
	wake, err := h.opts.Subscriptions.Claim(r.Context(), id, worker)
	if err != nil {
		return err
	}
	token, err := h.hooks.token(h.opts.Owner(r.Context()), id, wake.Generation)
	if err != nil {
		return err
	}
	h.hooks.arm(r.Context(), id)
	return writeJSON(w, http.StatusOK, map[string]any{
		"wake_id": wake.Wake, "generation": wake.Generation, "token": token, "streams": linksOf(wake.Links, true),
		"lease_ttl_ms": wake.Lease.Milliseconds(),
	})
}

// link is a stream of a subscription as the protocol shows it.
type link struct {
	Path    string `json:"path"`
	Type    string `json:"link_type"`
	Acked   string `json:"acked_offset"`
	Tail    string `json:"tail_offset,omitempty"`
	Pending *bool  `json:"has_pending,omitempty"`
}

func linksOf(links []subscription.Link, all bool) []link {
	out := make([]link, 0, len(links))
	for _, l := range links {
		shown := link{Path: l.Path, Type: "glob", Acked: l.Acked}
		if l.Explicit {
			shown.Type = "explicit"
		}
		if all {
			shown.Tail, shown.Pending = l.Tail, &l.Pending
		}
		out = append(out, shown)
	}
	return out
}

func (h *handler) writeSubscription(w http.ResponseWriter, status int, sub subscription.Subscription) error {
	out := map[string]any{
		"id": sub.ID, "subscription_id": sub.ID, "type": sub.Kind, "streams": linksOf(sub.Links, false),
		"lease_ttl_ms": sub.Lease.Milliseconds(), "created_at": sub.Created.UTC().Format("2006-01-02T15:04:05.000Z07:00"), "status": "active",
	}
	for name, value := range map[string]string{"pattern": sub.Pattern, "wake_stream": sub.WakeStream, "description": sub.Description} {
		if value != "" {
			out[name] = value
		}
	}
	if sub.Failing {
		out["status"] = "failed"
	}
	if sub.Kind == subscription.Webhook {
		hook := map[string]any{"url": sub.URL}
		if key, err := h.hooks.key(sub.Owner); err == nil {
			hook["signing"] = map[string]string{"alg": "ed25519", "kid": key.id, "jwks_url": sub.Origin + Prefix + control + "/jwks.json"}
		}
		out["webhook"] = hook
	}
	return writeJSON(w, status, out)
}

// readStored reads JSON that ends up in the store, and counts the bytes that arrive: a
// body need not say its length.
func (h *handler) readStored(w http.ResponseWriter, r *http.Request, into any) error {
	n, err := readJSON(w, r, into)
	if err != nil {
		return err
	}
	end, err := h.opts.Count(r.Context(), n)
	if err == nil {
		end()
	}
	return err
}

// readJSON decodes the body of a request and returns its length.
func readJSON(w http.ResponseWriter, r *http.Request, into any) (int64, error) {
	if err := plain(w, r); err != nil {
		return 0, err
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControl))
	if err != nil {
		return 0, badRequest("the body could not be read: %v", err)
	}
	if len(data) == 0 {
		return 0, nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return 0, badRequest("the body is not the JSON that is expected: %v", err)
	}
	return int64(len(data)), nil
}

func writeJSON(w http.ResponseWriter, status int, value any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	return encodeJSON(w, status, value)
}

func encodeJSON(w http.ResponseWriter, status int, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.WriteHeader(status)
	_, _ = w.Write(data) // fails only if the peer is gone
	return nil
}

// controlErrors are the answers of the protocol to errors about subscriptions. The
// first match counts.
var controlErrors = []struct {
	err    error
	status int
	code   string
}{
	{errToken, http.StatusUnauthorized, "TOKEN_INVALID"},
	{errHook, http.StatusBadRequest, "WEBHOOK_URL_REJECTED"},
	{errMethod, http.StatusMethodNotAllowed, "INVALID_REQUEST"},
	{errEncoding, http.StatusUnsupportedMediaType, "INVALID_REQUEST"},
	{subscription.ErrNotFound, http.StatusNotFound, "SUBSCRIPTION_NOT_FOUND"},
	{subscription.ErrExists, http.StatusConflict, "SUBSCRIPTION_ALREADY_EXISTS"},
	{subscription.ErrFenced, http.StatusConflict, "FENCED"},
	{subscription.ErrIdle, http.StatusConflict, "NO_PENDING_WORK"},
	{subscription.ErrCursor, http.StatusConflict, "INVALID_OFFSET"},
	{subscription.ErrInvalid, http.StatusBadRequest, "INVALID_REQUEST"},
	{stream.ErrInvalid, http.StatusBadRequest, "INVALID_REQUEST"},
	{errRequest, http.StatusBadRequest, "INVALID_REQUEST"},
}

func (h *handler) failControl(w http.ResponseWriter, r *http.Request, err error) {
	var claimed *subscription.ClaimedError
	if errors.As(err, &claimed) {
		wirecode.Name(w.Header(), err)
		_ = writeJSON(w, http.StatusConflict, map[string]any{"error": map[string]any{
			"code": "ALREADY_CLAIMED", "message": err.Error(), "current_holder": claimed.Holder, "generation": claimed.Generation,
		}})
		return
	}
	for _, e := range controlErrors {
		if errors.Is(err, e.err) {
			wirecode.Name(w.Header(), err)
			writeError(w, e.status, e.code, err.Error())
			return
		}
	}
	h.opts.Fail(w, r, err)
}

func writeError(w http.ResponseWriter, status int, code, message string) {
	_ = writeJSON(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}
