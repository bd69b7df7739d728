package main

import (
	"strings"
	"testing"
)

// generated is the code of the plugin for a service with a plain method and a stream,
// and for another that has a method of the same name.
const generated = `package demo

import (
	connect "connectrpc.com/connect"
	context "context"
	v1 "example.com/v1"
)

func NewRowsClient() RowsClient {
	return &rowsClient{
		get: connect.NewClient[v1.GetRow, v1.Row](
			url,
		),
		watch: connect.NewClient[v1.Watch, v1.Row](
			url,
		),
	}
}

type rowsClient struct {
	get   *connect.Client[v1.GetRow, v1.Row]
	watch *connect.Client[v1.Watch, v1.Row]
}

func (c *rowsClient) Get(ctx context.Context, req *v1.GetRow) (*v1.Row, error) {
	response, err := c.get.CallUnary(ctx, connect.NewRequest(req))
	if response != nil {
		return response.Msg, err
	}
	return nil, err
}

func (c *rowsClient) Watch(ctx context.Context, req *v1.Watch) (*connect.ServerStreamForClient[v1.Row], error) {
	return c.watch.CallServerStream(ctx, connect.NewRequest(req))
}

func handler() {
	rowsGetHandler := connect.NewUnaryHandlerSimple(
		svc.Get,
	)
	blobsGetHandler := connect.NewUnaryHandlerSimple(
		svc.Get,
	)
	rowsWatchHandler := connect.NewServerStreamHandlerSimple(
		svc.Watch,
	)
}

func NewBlobsClient() BlobsClient {
	return &blobsClient{
		get: connect.NewClient[v1.GetBlob, v1.Blob](
			url,
		),
	}
}

type blobsClient struct {
	get *connect.Client[v1.GetBlob, v1.Blob]
}

func (c *blobsClient) Get(ctx context.Context, req *v1.GetBlob) (*v1.Blob, error) {
	response, err := c.get.CallUnary(ctx, connect.NewRequest(req))
	if response != nil {
		return response.Msg, err
	}
	return nil, err
}
`

func TestUnaryMethodsCallOurs(t *testing.T) {
	got, err := one([]byte(generated))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"unary.NewHandler(\n": 2, "connect.NewUnaryHandler": 0, "connect.NewServerStreamHandlerSimple(\n": 1,
		"get: unary.NewClient[*v1.GetRow, *v1.Row](\n": 1, "get: unary.NewClient[*v1.GetBlob, *v1.Blob](\n": 1, "watch: connect.NewClient[v1.Watch, v1.Row](\n": 1,
		"get   *unary.Client[*v1.GetRow, *v1.Row]\n": 1, "get *unary.Client[*v1.GetBlob, *v1.Blob]\n": 1, "watch *connect.Client[v1.Watch, v1.Row]\n": 1,
		"(*v1.Row, error) {\n\treturn c.get.Call(ctx, req)\n}": 1, "(*v1.Blob, error) {\n\treturn c.get.Call(ctx, req)\n}": 1,
		"c.watch.CallServerStream(ctx, connect.NewRequest(req))": 1, "\t" + ours + "\n": 1,
	} {
		if n := strings.Count(string(got), text); n != want {
			t.Errorf("%d times, not %d: %s", n, want, text)
		}
	}
	if t.Failed() {
		t.Logf("%s", got)
	}
}

// A file of streams only does not import what it does not call.
func TestStreamsStay(t *testing.T) {
	streams := "package demo\n\nimport (\n\tconnect \"connectrpc.com/connect\"\n)\n\nvar h = connect.NewBidiStreamHandler(x)\n"
	if got, err := one([]byte(streams)); err != nil || string(got) != streams {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestUnknownCodeFails(t *testing.T) {
	for name, code := range map[string]string{
		"another call":         strings.Replace(generated, "response, err := c.get.", "res, err := c.get.", 1),
		"another field":        strings.Replace(generated, "get *connect", "got *connect", 1),
		"another constructor":  strings.Replace(generated, "NewUnaryHandlerSimple(", "NewUnaryHandler(", 2),
		"another import":       strings.Replace(generated, "connect \"", "rpc \"", 1),
		"an alike field twice": strings.Replace(generated, "get *connect.Client[v1.GetBlob, v1.Blob]", "get *connect.Client[v1.GetBlob, v1.Blob]\n\tget *connect.Client[v1.GetBlob, v1.Blob]", 1),
	} {
		if _, err := one([]byte(code)); err == nil {
			t.Errorf("%s was not noticed", name)
		}
	}
}
