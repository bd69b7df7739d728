package streams

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/stet-dev/stet/stream"
)

// Headers of the protocol.
const (
	headerNext        = "Stream-Next-Offset"
	headerUpToDate    = "Stream-Up-To-Date"
	headerClosed      = "Stream-Closed"
	headerCursor      = "Stream-Cursor"
	headerSeq         = "Stream-Seq"
	headerTTL         = "Stream-TTL"
	headerExpires     = "Stream-Expires-At"
	headerSource      = "Stream-Forked-From"
	headerForkAt      = "Stream-Fork-Offset"
	headerForkSub     = "Stream-Fork-Sub-Offset"
	headerEncoding    = "Stream-SSE-Data-Encoding"
	headerProducer    = "Producer-Id"
	headerEpoch       = "Producer-Epoch"
	headerProducerSeq = "Producer-Seq"
	headerExpected    = "Producer-Expected-Seq"
	headerReceived    = "Producer-Received-Seq"
)

// describe sets the headers that describe a stream.
func describe(h http.Header, info stream.Info) {
	h.Set("Content-Type", info.ContentType)
	h.Set(headerNext, info.Tail.String())
	if info.Closed {
		h.Set(headerClosed, "true")
	}
	if info.Expiry.TTL != nil {
		h.Set(headerTTL, strconv.FormatUint(*info.Expiry.TTL, 10))
	}
	if info.Expiry.At != "" {
		h.Set(headerExpires, info.Expiry.At)
	}
}

// plain rejects a request whose body is encoded, such as compressed.
func plain(w http.ResponseWriter, r *http.Request) error {
	for _, line := range r.Header.Values("Content-Encoding") {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one != "" && !strings.EqualFold(one, "identity") {
				w.Header().Set("Accept-Encoding", "identity") // of requests to this address; see RFC 9110, 12.5.3
				return fmt.Errorf("%w: Content-Encoding is %.64q; send the body as it is, without that header", errEncoding, one)
			}
		}
	}
	return nil
}

// closing reports whether a request closes the stream. Values other than "true" count
// as absent.
func closing(r *http.Request) bool { return strings.EqualFold(r.Header.Get(headerClosed), "true") }

var (
	number = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
	digits = regexp.MustCompile(`^[0-9]+$`)
	// mediaType is what counts as a content type; anything else counts as none.
	mediaType = regexp.MustCompile(`^[\w-]+/[\w-]+`)
)

// count parses a number of a header in the given form.
func count(name, value string, form *regexp.Regexp) (uint64, error) {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil || !form.MatchString(value) {
		return 0, badRequest("%s is %.64q, which is not a whole number", name, value)
	}
	return n, nil
}

// configOf reads the configuration of a stream from a request.
func configOf(r *http.Request) (stream.Config, error) {
	c := stream.Config{Closed: closing(r), Expiry: stream.Expiry{At: r.Header.Get(headerExpires)}}
	if t := strings.TrimSpace(r.Header.Get("Content-Type")); mediaType.MatchString(t) {
		c.ContentType = t
	}
	if ttl := r.Header.Get(headerTTL); ttl != "" {
		n, err := count(headerTTL, ttl, number)
		if err != nil {
			return stream.Config{}, err
		}
		c.Expiry.TTL = &n
	}
	var err error
	c.Fork, err = forkOf(r)
	return c, err
}

// forkOf reads the fork that a request makes, nil if it makes none.
func forkOf(r *http.Request) (*stream.Fork, error) {
	source, at, sub := r.Header.Get(headerSource), r.Header.Get(headerForkAt), r.Header.Values(headerForkSub)
	if source == "" {
		if len(sub) > 0 || at != "" {
			return nil, badRequest("a place of a fork needs %s", headerSource)
		}
		return nil, nil
	}
	path, err := sourceOf(source)
	if err != nil {
		return nil, err
	}
	f := &stream.Fork{Source: path}
	if at != "" {
		place, err := stream.ParseOffset(at)
		if err != nil {
			return nil, err
		}
		f.At = &place
	}
	if len(sub) > 0 {
		if f.Sub, err = count(headerForkSub, sub[0], number); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// sourceOf returns the path of the stream at an address of this server.
func sourceOf(address string) (string, error) {
	decoded, err := url.PathUnescape(address)
	path, ok := strings.CutPrefix(decoded, Prefix)
	if err != nil || !ok {
		return "", badRequest("%s is %.128q; the addresses of streams begin with %s", headerSource, address, Prefix)
	}
	return path, nil
}

// producerOf returns the producer of a request, nil without one.
func producerOf(r *http.Request) (*stream.Producer, error) {
	id, epoch, seq := r.Header.Values(headerProducer), r.Header.Values(headerEpoch), r.Header.Values(headerProducerSeq)
	switch {
	case len(id)+len(epoch)+len(seq) == 0:
		return nil, nil
	case len(id) == 0 || len(epoch) == 0 || len(seq) == 0:
		return nil, badRequest("%s, %s and %s come together", headerProducer, headerEpoch, headerProducerSeq)
	}
	p := &stream.Producer{ID: id[0]}
	var err error
	if p.Epoch, err = count(headerEpoch, epoch[0], digits); err != nil {
		return nil, err
	}
	if p.Seq, err = count(headerProducerSeq, seq[0], digits); err != nil {
		return nil, err
	}
	return p, nil
}

// etag identifies an answer: the stream, the beginning, the end, and whether the
// stream ends there.
func etag(info stream.Info, from string, to stream.Offset, closed bool) string {
	end := ""
	if closed {
		end = ":c"
	}
	return fmt.Sprintf(`"%s:%s:%s%s"`, info.ID, from, to, end)
}

// matches reports whether the client already has the answer with this tag.
func matches(r *http.Request, tag string) bool {
	for _, line := range r.Header.Values("If-None-Match") {
		for one := range strings.SplitSeq(line, ",") {
			if strings.TrimPrefix(strings.TrimSpace(one), "W/") == tag {
				return true
			}
		}
	}
	return false
}

// origin returns the address of this server as the caller spelled it.
func origin(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
