package server

import (
	"context"

	"connectrpc.com/grpchealth"
)

// health answers grpc.health.v1 as /readyz does: who cannot work says so for every
// service.
type health struct {
	known grpchealth.Checker
	ready func(context.Context) error
}

// Check implements grpchealth.Checker.
func (h *health) Check(ctx context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	res, err := h.known.Check(ctx, req)
	if err == nil && h.ready(ctx) != nil {
		res = &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}
	}
	return res, err
}

// ready is Ready, or always.
func (o *Options) ready(ctx context.Context) error {
	if o.Ready == nil {
		return nil
	}
	return o.Ready(ctx)
}
