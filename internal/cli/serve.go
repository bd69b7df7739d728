package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/server"
)

// serveFlags are the flags of serve that override a setting. 'stet config explain'
// explains those without a text.
var serveFlags = []struct{ name, key, about string }{
	{"mode", "serve.mode", "local: the owner, on this machine; server: tenants with tokens"},
	{"listen", "serve.listen", "address and port; port 0 takes a free one"},
	{"hosts", "serve.hosts", "host names of the server, separated by commas"},
	{"tls-cert", "serve.tls_cert", "file with the certificate"},
	{"tls-key", "serve.tls_key", "file with the certificate's key"},
	{"token-file", "serve.token_file", "file that holds the token (default: token in the store's directory)"},
	{"workspaces", "serve.workspaces", "directories that clients may capture and rewind, separated by commas"},
	{"audit", "serve.audit", "file of the audit log"},
	{"agent", "serve.agent", "agent that clients can run here: none, scripted or openai"},
	{"agent-script", "serve.agent_script", "script of the scripted agent"},
	{"agent-url", "serve.agent_url", "address of an OpenAI-compatible endpoint"},
	{"agent-model", "serve.agent_model", "model to request from the endpoint"},
	{"agent-key-file", "serve.agent_key_file", "file with the endpoint's key"},
	{"quota-bytes", "serve.quota_bytes", "bytes that a tenant may store, such as 10GiB"},
	{"quota-requests", "serve.quota_requests", "calls that a tenant may start per second"},
	{"quota-streams", "serve.quota_streams", "streams that a tenant may have open"},
	{"log", "serve.log", "log every request on standard error, as json or text"},
}

func (a *app) serveCommand() *cobra.Command {
	var explain, demo bool
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve the store and its page, on this machine or to tenants",
		GroupID: groupServe,
		Long: `Serve the store over Connect, gRPC, gRPC-Web and JSON, and a page for the browser, on
one port.

In local mode, the default, the server listens on the loopback interface, and every call
needs the token in the token file. The first start creates this file, and only its owner
can read it. The printed address has the token after a '#', a part that browsers do not
send: open the address once, and the page remembers the token. Requests for foreign
hosts, and requests from pages of other sites, are refused.

In server mode, callers need their own tokens (see 'stet tokens'). Each tenant has its
own store below the store's directory. Other machines are served only with a
certificate, or with --insecure behind a proxy that has one.

With --store postgres://… and --blobs s3://…, the data is in a database and a bucket.
Any number of servers may share them; /readyz reports whether both can be used.

/healthz and /readyz answer without a token; /metrics (Prometheus) needs the one in the
token file. Traces are sent to OTEL_EXPORTER_OTLP_ENDPOINT if it is set. On SIGINT or
SIGTERM, the server stops after the running calls have ended. Every flag is also a
setting: 'stet serve --explain' shows the values and their sources.`,
		Example: "  stet serve\n  stet serve --listen 127.0.0.1:8080\n  stet --store http://127.0.0.1:7717 ls\n" +
			"  stet serve --mode server --listen 0.0.0.0:7717 --tls-cert cert.pem --tls-key key.pem",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := a.serveSettings(cmd)
			if err != nil {
				return err
			}
			if explain {
				return a.explainSettings(settingsBelow("serve."), all)
			}
			return a.serve(cmd.Context(), all, demo)
		},
	}
	flags := cmd.Flags()
	for _, f := range serveFlags {
		s, _ := settingOf(f.key)
		flags.String(f.name, s.value, f.about)
	}
	flags.Lookup("log").NoOptDefVal = "json"
	flags.Bool("insecure", false, "allow server mode without TLS from other machines")
	flags.BoolVar(&demo, "demo", false, "fill an empty store with a demonstration that includes a running agent")
	flags.BoolVar(&explain, "explain", false, "show the settings of the server and their sources, and exit")
	return cmd
}

// serveSettings are the settings, overridden by flags.
func (a *app) serveSettings(cmd *cobra.Command) (settings, error) {
	all, err := a.settings()
	if err != nil {
		return nil, err
	}
	for _, f := range append(serveFlags, struct{ name, key, about string }{"insecure", "serve.insecure", ""}) {
		if !cmd.Flags().Changed(f.name) {
			continue
		}
		s, err := settingOf(f.key)
		if err != nil {
			return nil, err
		}
		value := cmd.Flags().Lookup(f.name).Value.String()
		if err := s.check(value); err != nil {
			return nil, usage(fmt.Errorf("--%s: %w", f.name, err))
		}
		all[f.key] = decided{value, "flag --" + f.name}
	}
	return all, nil
}

func (a *app) serve(ctx context.Context, all settings, demo bool) (err error) {
	logger := a.serveLogger(all)
	opts, err := a.serveOptions(all, logger)
	if err != nil {
		return err
	}
	stopTraces, err := sendTraces(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopTraces()) }()
	if all.text("serve.mode") == "server" {
		return a.serveTenants(ctx, all, opts, logger)
	}
	if opts.Certificate != nil || all.on("serve.insecure") {
		return usage(errors.New("certificates and --insecure are for server mode; pass --mode server"))
	}
	return a.withStore(ctx, true, func(db *stet.DB) error {
		if demo {
			if err := a.fillDemo(ctx, db); err != nil {
				return err
			}
		}
		// Only after the store exists: it rejects directories with other content.
		if opts.Token, err = server.TokenFile(all.text("serve.token_file")); err != nil {
			return err
		}
		if a.fleet != nil {
			opts.Ready, opts.Shared = a.fleet.Ready, true
		}
		if db.Engine() != nil { // else its workspaces and agents are elsewhere
			opts.Settle = func(ctx context.Context, w *checkpoint.Workspace) { a.settle(ctx, db, w, "") }
		}
		handler, err := server.New(db, opts)
		if err != nil {
			return err
		}
		defer a.keepSending(ctx, db)()
		if a.fleet != nil {
			defer keepSearch(ctx, a.fleet, logger)()
		}
		defer keepIndexes(ctx, db, logger)()
		return a.answer(ctx, all, opts, handler)
	})
}

// keepIndexes keeps the indexes of a store up to date while a server runs. The result
// ends it.
func keepIndexes(ctx context.Context, db *stet.DB, logger *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := db.KeepIndexes(ctx); err != nil {
			logger.Warn("the indexes are not kept up to date; each search updates its own", "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// keepSearch keeps the search indexes of a fleet up to date while a server runs. The
// result ends it.
func keepSearch(ctx context.Context, f *fleet.Fleet, logger *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.KeepSearch(ctx, func(err error) { logger.Warn("search indexes are not up to date", "error", err) })
	}()
	return func() {
		cancel()
		<-done
	}
}

// serveTenants serves tenants, whose tokens must exist.
func (a *app) serveTenants(ctx context.Context, all settings, opts *server.Options, logger *slog.Logger) (err error) {
	if a.remote != "" {
		return usage(errors.New("a remote (remote.url, --remote) is for local mode; copy the stores of tenants with 'stet push'"))
	}
	stores, tokens, end, err := a.serveStores(ctx, all, opts, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	none, err := tokens.Empty()
	if err != nil {
		return err
	}
	if none {
		return usage(errors.New("no tokens yet; create one with 'stet tokens create TENANT'"))
	}
	if err := server.CheckWorkspaces(opts.Workspaces); err != nil {
		return usage(err)
	}
	if opts.Token, err = server.TokenFile(all.text("serve.token_file")); err != nil {
		return err
	}
	opts.Sign = tokens.Sign
	srv, err := server.NewTenants(stores, tokens.Verify, opts)
	if err != nil {
		return err
	}
	return errors.Join(a.answer(ctx, all, opts, srv), srv.Close())
}

// serveStores returns the stores of tenants and the tokens that open them. The
// caller calls end when no store is open.
func (a *app) serveStores(ctx context.Context, all settings, opts *server.Options, logger *slog.Logger) (stores server.Tenants, tokens *access.Tokens, end func() error, err error) {
	// Many stores are open at once, so each has a small cache.
	options, err := a.storeOptions()
	if err != nil {
		return nil, nil, nil, err
	}
	options.CacheBytes = 8 << 20
	if fleet.IsAddress(a.storePlace()) {
		f, err := a.openFleet(ctx, options)
		if err != nil {
			return nil, nil, nil, err
		}
		opts.Ready, opts.Shared = f.Ready, true
		stopHouse, err := keepHouse(ctx, f, all)
		if err != nil {
			return nil, nil, nil, errors.Join(err, f.Close())
		}
		stopSearch := keepSearch(ctx, f, logger)
		stop := func() {
			stopSearch()
			stopHouse()
		}
		return f, f.Tokens(), func() error {
			stop()
			return f.Close()
		}, nil
	}
	dir, err := a.storeDir()
	if err != nil {
		return nil, nil, nil, err
	}
	quiet := *a
	quiet.in = strings.NewReader("") // do not ask for a passphrase during a call
	unlock := func(dir string) (keyring.Unlock, error) { return quiet.unlock(ctx, dir) }
	tenants := &server.DirTenants{Dir: dir, Unlock: unlock, Options: options}
	tokens = access.OpenTokens(filepath.Join(dir, access.TokensName))
	opts.Ready = (&diskReady{dir: dir, create: os.CreateTemp, tokens: tokens}).check
	return tenants, tokens, func() error { return nil }, nil
}

// answer listens, prints the address, and serves until ctx is done.
func (a *app) answer(ctx context.Context, all settings, opts *server.Options, handler http.Handler) error {
	listener, err := listenSafely(ctx, all, opts)
	if err != nil {
		return err
	}
	scheme, serve := "http://", server.Serve
	if opts.Certificate != nil {
		scheme, serve = "https://", func(ctx context.Context, l net.Listener, h http.Handler) error {
			return server.ServeTLS(ctx, l, h, opts.Certificate)
		}
	}
	if err := a.announce(scheme+listener.Addr().String(), all, opts); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := serve(ctx, listener, handler); err != nil {
		return err
	}
	a.say("stopped")
	return nil
}

// announce prints the address of the server. The token is shown only on a terminal;
// programs read the file.
func (a *app) announce(address string, all settings, opts *server.Options) error {
	tokenFile, mode := all.text("serve.token_file"), all.text("serve.mode")
	if a.json {
		return a.printJSON(map[string]string{"schema": "stet.serve.v1", "address": address, "mode": mode, "token_file": tokenFile})
	}
	page := address + "/"
	if mode == "local" && isTerminal(a.out) {
		page += "#" + opts.Token
	}
	_, err := io.WriteString(a.out, page+"\n")
	if mode == "server" {
		a.say("serving tenants; the token for /metrics is in %s; stop with Ctrl-C", tokenFile)
	} else {
		a.say("serving; the token is in %s; stop with Ctrl-C", tokenFile)
	}
	return err
}

// listenSafely rejects addresses that others can reach, except in server mode with a
// certificate or with --insecure.
func listenSafely(ctx context.Context, all settings, opts *server.Options) (net.Listener, error) {
	address := all.text("serve.listen")
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usage(fmt.Errorf("--listen: %w", err))
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	secure := opts.Certificate != nil || all.on("serve.insecure")
	switch {
	case loopback:
	case all.text("serve.mode") != "server":
		return nil, usage(fmt.Errorf("--listen %s: only the loopback interface is served (127.0.0.1, ::1 or localhost) unless --mode is server", address))
	case !secure:
		return nil, usage(fmt.Errorf("--listen %s: traffic would be unencrypted; pass --tls-cert and --tls-key, or --insecure behind a proxy with TLS", address))
	case opts.Certificate == nil && len(opts.Hosts) == 0:
		return nil, usage(errors.New("--insecure needs --hosts, the host names of the proxy"))
	}
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", address)
}

// serveLogger returns the log of the server, which may discard everything.
func (a *app) serveLogger(all settings) *slog.Logger {
	switch all.text("serve.log") {
	case "json":
		return slog.New(slog.NewJSONHandler(a.err, nil))
	case "text":
		return slog.New(slog.NewTextHandler(a.err, nil))
	}
	return slog.New(slog.DiscardHandler)
}

// list splits a setting at its commas.
func list(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
