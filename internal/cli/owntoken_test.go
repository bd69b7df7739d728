package cli

import (
	"strings"
	"testing"
)

func TestListenersOfAPort(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1E25 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1
   1: 0100007F:1E26 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 2 1
   2: 0100007F:1E27 0100007F:1E25 01 00000000:00000000 00:00000000 00000000  1000        0 3 1
   3: 0100007F:1E25 0100007F:1E27 01 00000000:00000000 00:00000000 00000000  1001        0 4 1
`
	for _, c := range []struct {
		port         uint16
		own, listens bool
	}{{7717, true, true}, {7718, false, true}, {7719, true, false}} {
		own, listens := listeners(strings.NewReader(table), c.port, 1000)
		if own != c.own || listens != c.listens {
			t.Errorf("port %d: own %v, listens %v; want %v, %v", c.port, own, listens, c.own, c.listens)
		}
	}
}
