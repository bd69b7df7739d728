package server_test

import (
	"testing"

	"github.com/stet-dev/stet/access"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

// The page shows complete commands: the owner of a store on this machine learns where it
// is. Tenants learn nothing about the machine.
func TestInfoNamesTheDirectoryOfTheOwnersStore(t *testing.T) {
	http, base := dial(t, start(t, nil), token).HTTP()
	if dir := call(t, stetv1connect.NewStoreServiceClient(http, base).Info, &stetv1.StoreInfoRequest{}).GetDir(); dir == "" {
		t.Error("the owner does not learn where the store is")
	}
	http, base = newHouse(t, nil).client("red", access.Admin).HTTP()
	if dir := call(t, stetv1connect.NewStoreServiceClient(http, base).Info, &stetv1.StoreInfoRequest{}).GetDir(); dir != "" {
		t.Errorf("a tenant learns %q", dir)
	}
}
