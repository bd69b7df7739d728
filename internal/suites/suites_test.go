package suites

import "testing"

func TestMain(m *testing.M) { run(m) }

var streams = suite{
	name: "Durable Streams", dir: "durablestreams", total: 338,
	// Without what sleeps for seconds or tries many random inputs.
	quick: `^(?!.*(TTL Expiration|TTL and Expiry|Property-Based|Chunking)).*$`,
	// A few tests wait until a live read ends, which is short here. Subscriptions call
	// servers of the suite.
	env: []string{"STET_SERVE_STREAM_WAIT_MS=800", "STET_SERVE_LOCAL_WEBHOOKS=true"},
}

// savers has the tests of the specification of savers, those for delta channels, and one of ours.
var savers = suite{name: "LangGraph", dir: "../../clients/langgraph", total: 718 + 8 + 3}

func TestDurableStreams(t *testing.T) { streams.test(t, streams.embedded(t)) }

func TestLangGraph(t *testing.T) {
	at := savers.embedded(t)
	build(t, savers.dir)
	savers.test(t, at)
}

// The same on a database and a bucket, with the token of a tenant.

func TestDurableStreamsOnAFleet(t *testing.T) { streams.test(t, streams.fleet(t)) }

func TestLangGraphOnAFleet(t *testing.T) {
	at := savers.fleet(t)
	build(t, savers.dir)
	savers.test(t, at)
}
