package server

import (
	"context"

	"connectrpc.com/grpchealth"
)

// health answers grpc.health.v1 like /readyz: a server that is not ready reports it
// for every service.
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

// ready calls Ready, if set.
func (o *Options) ready(ctx context.Context) error {
	if o.Ready == nil {
		return nil
	}
	return o.Ready(ctx)
}
