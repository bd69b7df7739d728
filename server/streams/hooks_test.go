package streams

import (
	"errors"
	"testing"
)

func TestOnlyPublicAddressesAreWebhooks(t *testing.T) {
	for _, c := range []struct {
		address           string
		tenants, oneOwner bool // whether they may use it
	}{
		{"https://example.com/hook", true, true},
		{"https://93.184.215.14/hook", true, true},
		{"http://example.com/hook", false, false},
		{"http://127.0.0.1:8080/hook", false, true},
		{"http://localhost/hook", false, true},
		{"https://10.0.0.1/hook", false, false},
		{"http://10.0.0.1/hook", false, false},
		{"https://169.254.169.254/latest", false, false},
		{"https://[fd00::1]/", false, false},
		{"https://[::ffff:10.0.0.1]/", false, false},
		{"https://[64:ff9b::a00:1]/", false, false},   // 10.0.0.1 behind a translator
		{"https://[64:ff9b::5db8:d70e]/", true, true}, // 93.184.215.14 behind one
		{"https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/", true, true},
		{"https://user:secret@example.com/", false, false},
		{"ftp://example.com/", false, false},
		{"example.com", false, false},
	} {
		for local, want := range map[bool]bool{false: c.tenants, true: c.oneOwner} {
			if err := checkHook(c.address, local); (err == nil) != want || err != nil && !errors.Is(err, errHook) {
				t.Errorf("%s, local %v: %v", c.address, local, err)
			}
		}
	}
	// A public name may lead anywhere.
	for _, address := range []string{"127.0.0.1:443", "10.1.2.3:443", "[::1]:443", "169.254.169.254:80", "100.64.0.1:443", "0.0.0.0:80",
		"0.1.2.3:80", "198.18.0.1:443", "240.0.0.1:443", "[::7f00:1]:443", "[64:ff9b::7f00:1]:443", "[64:ff9b:1::a00:1]:443", "[2002:a00:1::]:443"} {
		if err := checkAddress(address, false); !errors.Is(err, errHook) {
			t.Errorf("connecting to %s: %v", address, err)
		}
	}
	if err := checkAddress("127.0.0.1:80", true); err != nil {
		t.Error(err)
	}
}
