package subscription

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/stream"
)

// Kinds of subscriptions.
const (
	// Webhook sends a wake to an address.
	Webhook = "webhook"
	// PullWake writes a wake into a stream, from which workers claim it.
	PullWake = "pull-wake"
)

// Leases of wakes.
const (
	DefaultLease = 30 * time.Second
	MinLease     = time.Second
	MaxLease     = 10 * time.Minute
)

// maxStreams is how many streams a subscription may have.
const maxStreams = 10_000

// Config configures a new subscription. Creating it again with the same one is
// harmless.
type Config struct {
	// Kind is Webhook or PullWake.
	Kind string
	// Pattern finds streams by their paths: * is one part, ** any number of parts.
	Pattern string
	// Streams are further paths.
	Streams []string
	// URL is the address that gets the wakes of a webhook.
	URL string
	// WakeStream is the path of the stream that gets the wakes of a pull-wake.
	WakeStream string
	// Lease is how long a wake may last without an answer; DefaultLease if it is 0.
	Lease       time.Duration
	Description string
	// Origin is the address of the server, and Owner names the creator of the
	// subscription. They are not compared when it is created again.
	Origin, Owner string
}

// Path returns the path of a stream as it is stored: without slashes around it.
func Path(path string) string { return strings.Trim(path, "/") }

// check fills in defaults and validates a configuration.
func (c *Config) check() error {
	c.Pattern, c.WakeStream = Path(c.Pattern), Path(c.WakeStream)
	paths := make([]string, 0, len(c.Streams))
	for _, path := range c.Streams {
		path = Path(path)
		if err := stream.CheckPath(path); err != nil {
			return invalid("%v", err)
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	c.Streams = slices.Compact(paths)
	if c.WakeStream != "" {
		if err := stream.CheckPath(c.WakeStream); err != nil {
			return invalid("the stream of wakes: %v", err)
		}
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	switch {
	case c.Kind != Webhook && c.Kind != PullWake:
		return invalid("a subscription is a %s or a %s", Webhook, PullWake)
	case c.Pattern == "" && len(c.Streams) == 0:
		return invalid("a subscription needs streams or a pattern")
	case len(c.Pattern) > stream.MaxPath || len(c.Description) > 4096 || len(c.URL) > 4096:
		return invalid("the pattern, the address or the description is too long")
	case len(c.Streams) > maxStreams:
		return invalid("a subscription has at most %d streams", maxStreams)
	case c.Lease < MinLease || c.Lease > MaxLease:
		return invalid("a lease lasts %s to %s", MinLease, MaxLease)
	case c.Kind == Webhook && c.URL == "":
		return invalid("a webhook needs an address")
	case c.Kind == PullWake && c.WakeStream == "":
		return invalid("a pull-wake needs a stream for its wakes")
	}
	return nil
}

// sum returns a hash of the configuration.
func (c *Config) sum() []byte {
	same := *c
	same.Origin, same.Owner = "", ""
	text, _ := json.Marshal(same) // strings and numbers
	sum := sha256.Sum256(text)
	return sum[:]
}

func checkID(id string) error {
	if err := keyspace.CheckID(id); err != nil {
		return invalid("the id of the subscription %v", err)
	}
	return nil
}

// Match reports whether a path matches a pattern.
func Match(pattern, path string) bool {
	return match(strings.Split(Path(pattern), "/"), strings.Split(Path(path), "/"))
}

// match goes through the parts. A ** is tried at each place, and only the latest one
// can be worth trying again, so no pattern takes long.
func match(pattern, path []string) bool {
	star, mark, p, i := -1, 0, 0, 0
	for i < len(path) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == "*" || pattern[p] == path[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}
