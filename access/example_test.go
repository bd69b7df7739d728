package access_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stet-dev/stet/access"
)

func Example() {
	dir, err := os.MkdirTemp("", "access")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	tokens := access.OpenTokens(filepath.Join(dir, access.TokensName))
	token, _, err := tokens.Create(access.Grant{Tenant: "shop", Scope: access.Write})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.HasPrefix(token, "stet_"))
	who, err := tokens.Verify(token)
	fmt.Println(who.Tenant, who.Scope, who.Scope.Allows(access.Admin), err)
	_, err = tokens.Verify(token + "x")
	fmt.Println(err)
	// Output:
	// true
	// shop write false <nil>
	// the token is not valid
}
