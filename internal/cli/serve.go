package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/server"
)

func (a *app) serveCommand() *cobra.Command {
	var listen, tokenFile string
	var logging bool
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve the store and its page on this machine",
		GroupID: groupServe,
		Long: `Serve the store: Connect, gRPC, gRPC-Web and JSON, and a page for the browser, on
one port of the loopback interface.

Every call needs the token in the token file, which is made at the first start and
only its owner can read. The address that is printed carries it behind a '#', where
browsers keep it to themselves: open it once, and the page remembers it. Requests
for foreign hosts, and those that other sites' pages send, are refused.

/healthz and /readyz answer without a token, /metrics (Prometheus) with it. The
server stops on SIGINT or SIGTERM, after the calls that are under way.`,
		Example: "  stet serve\n  stet serve --listen 127.0.0.1:8080\n  stet --store http://127.0.0.1:7717 ls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := a.storeDir()
			if err != nil {
				return err
			}
			if tokenFile == "" {
				tokenFile = filepath.Join(dir, server.TokenName)
			}
			return a.withStore(cmd.Context(), true, func(db *stet.DB) error {
				return a.serve(cmd.Context(), db, listen, tokenFile, logging)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:7717", "address and port on the loopback interface; port 0 takes a free one")
	flags.StringVar(&tokenFile, "token-file", "", "file that holds the token (default: token in the store's directory)")
	flags.BoolVar(&logging, "log", false, "log every request on standard error, as JSON lines")
	return cmd
}

func (a *app) serve(ctx context.Context, db *stet.DB, listen, tokenFile string, logging bool) error {
	listener, err := listenLoopback(ctx, listen)
	if err != nil {
		return err
	}
	token, err := server.TokenFile(tokenFile)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	metrics, err := exposeMetrics()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	opts := &server.Options{Token: token, Version: version(), Metrics: metrics}
	if logging {
		opts.Logger = slog.New(slog.NewJSONHandler(a.err, nil))
	}
	handler, err := server.New(db, opts)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	address := "http://" + listener.Addr().String()
	if err := a.announce(address, token, tokenFile); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := server.Serve(ctx, listener, handler); err != nil {
		return err
	}
	a.say("stopped")
	return nil
}

// announce tells where the server is. The token is shown to a person at a
// terminal only; programs read the file.
func (a *app) announce(address, token, tokenFile string) error {
	if a.json {
		return a.printJSON(map[string]string{"schema": "stet.serve.v1", "address": address, "token_file": tokenFile})
	}
	page := address + "/"
	if isTerminal(a.out) {
		page += "#" + token
	}
	_, err := io.WriteString(a.out, page+"\n")
	a.say("serving; the token is in %s; stop with Ctrl-C", tokenFile)
	return err
}

// listenLoopback refuses addresses that others can reach.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usage(fmt.Errorf("--listen: %w", err))
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, usage(fmt.Errorf("--listen %s: only the loopback interface is served (127.0.0.1, ::1 or localhost)", address))
	}
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", address)
}

// exposeMetrics makes OpenTelemetry's metrics readable for Prometheus. It must
// run before the instruments are used; those made earlier are connected too.
func exposeMetrics() (http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}
