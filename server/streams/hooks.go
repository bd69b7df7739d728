package streams

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/subscription"
)

// hookTime limits one request to a webhook.
const hookTime = 15 * time.Second

// errHook says that an address cannot be a webhook.
var errHook = fault.Under(subscription.ErrInvalid, "", "this address cannot be a webhook")

// hooks delivers the wakes of webhooks, and does the due work of subscriptions that
// needs no request. Due work is recorded in their rows, so another process, or the
// next one, can continue.
type hooks struct {
	h      *handler
	client *http.Client

	resuming sync.Mutex // guards resumed; held while it happens
	resumed  bool

	mu     sync.Mutex // guards timers
	timers map[string]*time.Timer
}

func newHooks(h *handler) *hooks {
	d := &hooks{h: h, timers: make(map[string]*time.Timer)}
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		return checkAddress(address, h.opts.LocalHooks) // of the host, whatever its name was resolved to
	}}
	d.client = &http.Client{
		Timeout:       hookTime,
		Transport:     &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: 5 * time.Second, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return d
}

// checkHook rejects an address that is not public. With local, addresses of this
// machine are allowed, without TLS.
func checkHook(address string, local bool) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return fmt.Errorf("%w: it is not a URL", errHook)
	}
	ip, ipErr := netip.ParseAddr(u.Hostname())
	here := u.Hostname() == "localhost" || ipErr == nil && ip.IsLoopback()
	switch {
	case here && !local:
		return fmt.Errorf("%w: it is on the server's machine", errHook)
	case here && u.Scheme == "http":
		return nil
	case u.Scheme != "https":
		return fmt.Errorf("%w: it needs https", errHook)
	case ipErr == nil && !public(ip):
		return fmt.Errorf("%w: it is not public", errHook)
	}
	return nil
}

// checkAddress rejects connections to addresses that are not public.
func checkAddress(address string, local bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", errHook, err)
	}
	if ip := at.Addr(); !public(ip) && !(local && ip.Unmap().IsLoopback()) {
		return fmt.Errorf("%w: it leads to %s, which is not public", errHook, ip)
	}
	return nil
}

// special are ranges that package netip does not know as such, and that are not public
// either.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),      // this network
	netip.MustParsePrefix("100.64.0.0/10"),  // carriers
	netip.MustParsePrefix("192.0.0.0/24"),   // protocols
	netip.MustParsePrefix("198.18.0.0/15"),  // measurements
	netip.MustParsePrefix("240.0.0.0/4"),    // reserved
	netip.MustParsePrefix("::/96"),          // IPv4 in IPv6, as it was once written
	netip.MustParsePrefix("64:ff9b:1::/48"), // translated to IPv4 in ways of each network
	netip.MustParsePrefix("2002::/16"),      // tunnels to IPv4
}

// translated is the range whose addresses a network without IPv4 translates to the IPv4
// address at their end. Every public IPv4 address is reached through it there.
var translated = netip.MustParsePrefix("64:ff9b::/96")

func public(ip netip.Addr) bool {
	ip = ip.Unmap()
	if translated.Contains(ip) {
		whole := ip.As16()
		ip, _ = netip.AddrFromSlice(whole[12:])
	}
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// resume arms, once, the work that was due when the store was opened. The request that
// happens to be the first may end meanwhile. If not everything could be read, the next
// request tries again; what is damaged holds nothing else up.
func (d *hooks) resume(ctx context.Context) {
	d.resuming.Lock()
	defer d.resuming.Unlock()
	if d.resumed {
		return
	}
	d.resumed = true
	for sub, err := range d.h.opts.Subscriptions.List(context.WithoutCancel(ctx)) {
		if err != nil {
			d.h.opts.Note(err)
			d.resumed = d.resumed && fault.Declared(err) == fault.Damaged
			continue
		}
		d.at(sub.ID, sub.Due)
	}
}

// arm makes sure that due work of a subscription is done.
func (d *hooks) arm(ctx context.Context, id string) {
	due, err := d.h.opts.Subscriptions.DueAt(ctx, id)
	if err != nil {
		if !errors.Is(err, subscription.ErrNotFound) {
			d.h.opts.Note(err)
		}
		return
	}
	d.at(id, due)
}

func (d *hooks) at(id string, due time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.timers[id]; t != nil {
		t.Stop()
		delete(d.timers, id)
	}
	if !due.IsZero() {
		d.timers[id] = time.AfterFunc(time.Until(due), func() { d.due(id) })
	}
}

// due does the due work of a subscription.
func (d *hooks) due(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*hookTime)
	defer cancel()
	wakes, err := d.h.opts.Subscriptions.Due(ctx, id)
	if err != nil {
		if !errors.Is(err, subscription.ErrNotFound) {
			d.h.opts.Note(err)
		}
		return
	}
	d.deliver(wakes)
	d.arm(ctx, id)
}

// deliver sends wakes, each independently.
func (d *hooks) deliver(wakes []subscription.Wake) {
	for _, w := range wakes {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*hookTime)
			defer cancel()
			next, err := d.one(ctx, w)
			if err != nil && !errors.Is(err, subscription.ErrNotFound) && !errors.Is(err, subscription.ErrFenced) {
				d.h.opts.Note(err)
			}
			d.deliver(next)
			d.arm(ctx, w.ID)
		}()
	}
}

// one sends a wake, and returns the wakes that follow from the answer.
func (d *hooks) one(ctx context.Context, w subscription.Wake) ([]subscription.Wake, error) {
	done, err := d.send(ctx, w)
	if err != nil {
		return nil, errors.Join(err, d.h.opts.Subscriptions.Failed(ctx, w, rand.Float64()))
	}
	if !done {
		return nil, nil // the worker calls back
	}
	return d.h.opts.Subscriptions.Finished(ctx, w)
}

// send makes the request. done is what the webhook answers.
func (d *hooks) send(ctx context.Context, w subscription.Wake) (done bool, err error) {
	key, err := d.key(w.Owner)
	if err != nil {
		return false, fmt.Errorf("webhook of subscription %s: %w", w.ID, err)
	}
	token, err := d.token(w.Owner, w.ID, w.Generation)
	if err != nil {
		return false, err
	}
	body, err := json.Marshal(map[string]any{
		"subscription_id": w.ID, "wake_id": w.Wake, "generation": w.Generation, "streams": linksOf(w.Links, true),
		"callback_url":   w.Origin + Prefix + control + "/subscriptions/" + url.PathEscape(w.ID) + "/callback",
		"callback_token": token,
	})
	if err != nil {
		return false, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Signature", key.sign(time.Now(), body))
	res, err := d.client.Do(r)
	if err != nil {
		var named *url.Error
		if errors.As(err, &named) {
			err = named.Err // without the address, which may hold a secret
		}
		return false, fmt.Errorf("webhook of subscription %s: %w", w.ID, err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return false, fmt.Errorf("webhook of subscription %s answers %d", w.ID, res.StatusCode)
	}
	var said struct{ Done bool }
	_ = json.NewDecoder(io.LimitReader(res.Body, maxControl)).Decode(&said) // another answer is not "done"
	return said.Done, nil
}
