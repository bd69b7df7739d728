// Command oneunary lets code that protoc-gen-connect-go generated call internal/unary for
// procedures with one request and one response, where it calls generic functions of
// Connect. Go compiles those again for every pair of messages, which took 3 MB of the
// program; internal/unary needs one instance. Streams stay as they are.
//
//	oneunary gen/stet/v1/stetv1connect/page_service.connect.go ...
//
// The files must be generated with the option simple. It fails for code that it does not
// know, so that a new version of the plugin is noticed.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"os"
	"regexp"
)

func main() {
	for _, file := range os.Args[1:] {
		if err := rewrite(file); err != nil {
			fmt.Fprintf(os.Stderr, "oneunary: %s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func rewrite(file string) error {
	code, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if code, err = one(code); err != nil {
		return err
	}
	return os.WriteFile(file, code, 0o644)
}

const (
	ours      = `unary "github.com/stet-dev/stet/internal/unary"`
	importing = `connect "connectrpc.com/connect"` + "\n"
)

var (
	handlers = regexp.MustCompile(`\bconnect\.NewUnaryHandlerSimple\(`)
	// A method of a client: its messages, and the field for it.
	calls = regexp.MustCompile(`(\(ctx context\.Context, req \*([\w.]+)\) \(\*([\w.]+), error\) \{
)	response, err := c\.(\w+)\.CallUnary\(ctx, connect\.NewRequest\(req\)\)
	if response != nil \{
		return response\.Msg, err
	\}
	return nil, err
`)
	left = regexp.MustCompile(`NewUnaryHandler|CallUnary`)
)

// one returns the code with calls of internal/unary.
func one(code []byte) ([]byte, error) {
	methods := calls.FindAllSubmatch(code, -1)
	if served := len(handlers.FindAll(code, -1)); served != len(methods) {
		return nil, fmt.Errorf("%d methods of clients for %d handlers", len(methods), served)
	}
	if len(methods) == 0 {
		return code, nil
	}
	code = handlers.ReplaceAll(code, []byte("unary.NewHandler("))
	code = calls.ReplaceAll(code, []byte("${1}\treturn c.$4.Call(ctx, req)\n"))
	for _, method := range methods {
		req, res, field := method[2], method[3], method[4]
		// As it is declared, and as it is made. Services of one file may name fields alike.
		client := regexp.MustCompile(fmt.Sprintf(`(?m)^(\t+%s:? +\*?)connect(\.(?:New)?Client)\[%s, %s\]`, field, req, res))
		if n := len(client.FindAll(code, -1)); n != 2 {
			return nil, fmt.Errorf("%s: %d uses of connect.Client, not 2", field, n)
		}
		code = client.ReplaceAll(code, fmt.Appendf(nil, "${1}unary${2}[*%s, *%s]", req, res))
	}
	if unknown := left.Find(code); unknown != nil {
		return nil, fmt.Errorf("%s is left", unknown)
	}
	if !bytes.Contains(code, []byte(importing)) {
		return nil, errors.New("no import of Connect")
	}
	return format.Source(bytes.Replace(code, []byte(importing), []byte(importing+"\t"+ours+"\n"), 1))
}
