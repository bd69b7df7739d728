package durablestreams

import (
	"testing"

	"github.com/stet-dev/stet/internal/suites/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

var protocol = suite.Suite{
	Name: "Durable Streams", Dir: ".", Total: 338,
	// Without what sleeps for seconds or tries many random inputs.
	Quick: `^(?!.*(TTL Expiration|TTL and Expiry|Property-Based|Chunking)).*$`,
	// A few tests wait until a live read ends, which is short here. Subscriptions call
	// servers of the suite.
	Env: []string{"STET_SERVE_STREAM_WAIT_MS=800", "STET_SERVE_LOCAL_WEBHOOKS=true"},
}

func TestConformance(t *testing.T) { protocol.Run(t, protocol.Embedded(t)) }

// The same on a database and a bucket, with the token of a tenant.
func TestConformanceOfAFleet(t *testing.T) { protocol.Run(t, protocol.Fleet(t)) }
