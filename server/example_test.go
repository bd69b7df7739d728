package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/server"
)

func ExampleNewTenants() {
	dir, err := os.MkdirTemp("", "stet")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	tokens := access.OpenTokens(filepath.Join(dir, access.TokensName))
	token, _, err := tokens.Create(access.Grant{Tenant: "shop", Scope: access.Read})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv, err := server.NewTenants(&server.DirTenants{Dir: dir}, tokens.Verify, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	web := httptest.NewServer(srv) // server.ServeTLS, outside of examples
	defer web.Close()
	for _, procedure := range []string{"List", "Create"} {
		req, err := http.NewRequestWithContext(context.Background(), "POST", web.URL+"/stet.v1.ConversationService/"+procedure, strings.NewReader("{}"))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		res.Body.Close()
		fmt.Println(procedure, res.Status)
	}
	// Output:
	// List 200 OK
	// Create 403 Forbidden
}
