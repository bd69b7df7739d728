package deploy_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/meter/otelmeter"
	"github.com/stet-dev/stet/server"
)

// touching is a provider whose instruments are used once as soon as they are made,
// so that all of them are exposed, also those for what rarely happens.
type touching struct{ metric.MeterProvider }

func (p touching) Meter(name string, opts ...metric.MeterOption) metric.Meter {
	return touchingMeter{p.MeterProvider.Meter(name, opts...)}
}

type touchingMeter struct{ metric.Meter }

func (m touchingMeter) Int64Counter(name string, opts ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	c, err := m.Meter.Int64Counter(name, opts...)
	if err == nil {
		c.Add(context.Background(), 0)
	}
	return c, err
}

func (m touchingMeter) Int64UpDownCounter(name string, opts ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	c, err := m.Meter.Int64UpDownCounter(name, opts...)
	if err == nil {
		c.Add(context.Background(), 0)
	}
	return c, err
}

func (m touchingMeter) Float64Histogram(name string, opts ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	h, err := m.Meter.Float64Histogram(name, opts...)
	if err == nil {
		h.Record(context.Background(), 0)
	}
	return h, err
}

// exposed returns the names of all series that a server has, in the way in which the
// command line makes one.
func exposed(t *testing.T) map[string]bool {
	t.Helper()
	registry := prometheus.NewRegistry()
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	old := otel.GetMeterProvider()
	otel.SetMeterProvider(touching{sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))})
	defer otel.SetMeterProvider(old)

	db, err := stet.Open(t.Context(), t.TempDir(), &stet.Options{MeterProvider: otelmeter.Global()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	nobody := func(string) (access.Principal, error) { return access.Principal{}, errors.New("nobody") }
	srv, err := server.NewTenants(&server.DirTenants{Dir: t.TempDir()}, nobody, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()

	res := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(res, httptest.NewRequest("GET", "/metrics", nil))
	names := map[string]bool{"up": true}                            // is Prometheus's own
	for _, task := range []string{"archive", "collect", "search"} { // of nodes with a database; see fleet.KeepHouse
		names["stet_house_"+task+"_succeeded_time"], names["stet_house_"+task+"_failed"] = true, true
	}
	for line := range strings.SplitSeq(res.Body.String(), "\n") {
		if name := regexp.MustCompile(`^[a-z_0-9]+`).FindString(line); name != "" {
			names[name] = true
		}
	}
	return names
}

// selector is the name of a series in a query: the files write every one with braces.
var selector = regexp.MustCompile(`\b([a-z_][a-z0-9_]*)\{`)

func TestEveryMetricExists(t *testing.T) {
	known := exposed(t)
	if len(known) < 20 {
		t.Fatalf("the server exposes %d series only: %v", len(known), known)
	}
	for file, least := range map[string]int{"grafana/stet.json": 15, "prometheus/stet.rules.yaml": 10} {
		found := selector.FindAllStringSubmatch(read(t, file), -1)
		if len(found) < least {
			t.Errorf("%s: found %d series only", file, len(found))
		}
		for _, name := range found {
			if !known[name[1]] {
				t.Errorf("%s: there is no series %s", file, name[1])
			}
		}
	}
	for _, name := range regexp.MustCompile("`((?:stet_server|agent_kv|rpc_server)_[a-z_]+)`").FindAllStringSubmatch(read(t, guide), -1) {
		if !known[name[1]] {
			t.Errorf("%s: there is no series %s", guide, name[1])
		}
	}
}

// quiet are the reasons of refused calls that need no alert, and why.
var quiet = map[string]string{"scope": "a mistake of one caller, who is told"}

// TestEveryReasonOfRefusedCallsHasAnAlert: the reasons are those of the page about the
// server.
func TestEveryReasonOfRefusedCallsHasAnAlert(t *testing.T) {
	listed := regexp.MustCompile("stet_server_refused_total` counts refused calls by tenant and reason \\(([^)]*)\\)").FindStringSubmatch(read(t, "../docs/SERVER.md"))
	if listed == nil {
		t.Fatal("docs/SERVER.md lists no reasons")
	}
	asked := make(map[string]bool)
	for _, query := range regexp.MustCompile(`stet_server_refused_total\{[^}]*reason=~?"([^"]*)"`).FindAllStringSubmatch(read(t, "prometheus/stet.rules.yaml"), -1) {
		for reason := range strings.SplitSeq(query[1], "|") {
			asked[reason] = true
		}
	}
	for _, reason := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(listed[1], -1) {
		if !asked[reason[1]] && quiet[reason[1]] == "" {
			t.Errorf("no alert asks for the reason %s", reason[1])
		}
		delete(asked, reason[1])
	}
	for reason := range asked {
		t.Errorf("an alert asks for the reason %s, which is none", reason)
	}
}

// TestRulesAreWhole: every alert has a query, a severity and a sentence.
func TestRulesAreWhole(t *testing.T) {
	rules, _ := at(documents(t, "stet.rules.yaml", read(t, "prometheus/stet.rules.yaml"))[0], "groups", 0, "rules").([]any)
	if len(rules) < 8 {
		t.Fatalf("found %d rules", len(rules))
	}
	text := read(t, guide)
	for _, rule := range rules {
		name, _ := at(rule, "alert").(string)
		expr, _ := at(rule, "expr").(string)
		severity := at(rule, "labels", "severity")
		if expr == "" || at(rule, "annotations", "summary") == nil || severity != "page" && severity != "ticket" {
			t.Errorf("%s is not whole: %v", name, rule)
		}
		if strings.Count(expr, "(") != strings.Count(expr, ")") {
			t.Errorf("%s: brackets do not match: %s", name, expr)
		}
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("%s does not explain %s", guide, name)
		}
	}
}
