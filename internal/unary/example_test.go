package unary_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stet-dev/stet/internal/unary"
)

func Example() {
	greet := func(_ context.Context, name *wrapperspb.StringValue) (*wrapperspb.BytesValue, error) {
		return wrapperspb.Bytes([]byte("hello " + name.GetValue())), nil
	}
	server := httptest.NewServer(unary.NewHandler("/example.Greeter/Greet", greet))
	defer server.Close()

	client := unary.NewClient[*wrapperspb.StringValue, *wrapperspb.BytesValue](server.Client(), server.URL+"/example.Greeter/Greet")
	res, err := client.Call(context.Background(), wrapperspb.String("world"))
	fmt.Printf("%s %v\n", res.GetValue(), err)
	// Output: hello world <nil>
}
