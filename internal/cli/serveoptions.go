package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/meter/otelmeter"
	"github.com/stet-dev/stet/server"
)

// serveOptions converts settings to options, and fills in the settings whose defaults
// depend on the store.
func (a *app) serveOptions(all settings, logger *slog.Logger) (*server.Options, error) {
	dir, err := a.serveDir()
	if err != nil {
		return nil, err
	}
	a.serveDefaults(all, dir)
	opts := &server.Options{
		Version: version(), Logger: logger, Hosts: list(all.text("serve.hosts")), Workspaces: list(all.text("serve.workspaces")),
		StreamsPerPeer: int(all.number("serve.streams_per_peer")), OpenStores: int(all.number("serve.open_stores")),
		AnswerBytes: all.size("serve.answer_bytes"), StreamWait: time.Duration(all.number("serve.stream_wait_ms")) * time.Millisecond,
		LocalHooks: all.text("serve.local_webhooks") == "true",
		Limits: access.Limits{
			Bytes: all.size("serve.quota_bytes"), Requests: float64(all.number("serve.quota_requests")), Streams: int(all.number("serve.quota_streams")),
		},
		Ready: (&diskReady{dir: dir, create: os.CreateTemp}).check,
	}
	if path := all.text("serve.audit"); path != "" {
		opts.Audit = openAudit(all, path)
	}
	if opts.Certificate, err = certificate(all, logger); err != nil {
		return nil, err
	}
	if opts.Agent, err = serveAgent(all); err != nil {
		return nil, err
	}
	if opts.Metrics, err = exposeMetrics(); err != nil {
		return nil, err
	}
	a.meters = otelmeter.Global()
	return opts, nil
}

// serveDir is the directory of a server's own files: that of its store, or of its
// node.
func (a *app) serveDir() (string, error) {
	if fleet.IsAddress(a.storePlace()) {
		return nodeDir(), nil
	}
	return a.storeDir()
}

func (a *app) serveDefaults(all settings, dir string) {
	set := func(key, value string) {
		if all.text(key) == "" {
			all[key] = decided{value, "default"}
		}
	}
	set("serve.token_file", filepath.Join(dir, server.TokenName))
	if all.text("serve.mode") == "server" {
		set("serve.audit", filepath.Join(dir, access.AuditName))
	}
}

func certificate(all settings, logger *slog.Logger) (*server.Certificate, error) {
	cert, key := all.text("serve.tls_cert"), all.text("serve.tls_key")
	if cert == "" && key == "" {
		return nil, nil
	}
	if cert == "" || key == "" {
		return nil, usage(errors.New("a certificate needs both --tls-cert and --tls-key"))
	}
	loaded, err := server.LoadCertificate(cert, key, logger)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	return loaded, nil
}

// exposeMetrics serves OpenTelemetry's metrics to Prometheus. It must run before the
// instruments are used; instruments created earlier are connected too.
func exposeMetrics() (http.Handler, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}
