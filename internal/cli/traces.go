package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// wantsTraces reads OpenTelemetry's own variables. Without them nothing is sent
// anywhere.
func wantsTraces() (bool, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	endpoint := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") + os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	switch exporter := os.Getenv("OTEL_TRACES_EXPORTER"); {
	case exporter == "none" || exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: invalid value %q; use otlp or none", exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := os.Getenv(name); protocol != "" && protocol != "http/protobuf" {
			return false, fmt.Errorf("%s: only http/protobuf is supported, not %q", name, protocol)
		}
	}
	return true, nil
}

// sendTraces starts sending traces if the environment configures it. stop sends the
// rest.
func sendTraces(ctx context.Context, logger *slog.Logger) (stop func() error, err error) {
	wanted, err := wantsTraces()
	if err != nil {
		return nil, usage(err)
	}
	if !wanted {
		return func() error { return nil }, nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Error("telemetry", slog.Any("error", err)) }))
	exporter, err := otlptracehttp.New(ctx) // reads the variables
	if err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	attrs := resource.NewSchemaless(attribute.String("service.name", "stet"), attribute.String("service.version", version()))
	// The environment overrides the attributes set here.
	env, err := resource.New(ctx, resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	if attrs, err = resource.Merge(attrs, env); err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(attrs))
	otel.SetTracerProvider(provider)
	return func() error {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := provider.Shutdown(late); err != nil {
			logger.Error("telemetry", slog.Any("error", err)) // an unreachable collector must not fail the server
		}
		return nil
	}, nil
}
