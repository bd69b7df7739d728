package realservers

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// Trips counts the round trips to a Postgres server: how often a client asked it to
// answer and waited. Notifications of other nodes are left out: nobody waits for them.
type Trips struct {
	address    string
	n          atomic.Int64
	statements atomic.Int64
}

// CountTrips returns an address that leads to the same database, and counts.
func CountTrips(t testing.TB, dsn string) (string, *Trips) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	trips := &Trips{address: u.Host}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go trips.serve(c)
		}
	}()
	u.Host = l.Addr().String()
	return u.String(), trips
}

// Of returns the round trips that do made.
func (n *Trips) Of(do func()) int64 {
	before := n.n.Load()
	do()
	return n.n.Load() - before
}

// Statements returns how many statements do had executed, those of notifications included.
func (n *Trips) Statements(do func()) int64 {
	before := n.statements.Load()
	do()
	return n.statements.Load() - before
}

func (n *Trips) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", n.address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer client.Close()
		io.Copy(client, server)
	}()
	notifies := make(map[string]bool) // prepared statements
	skip := false
	for begun := false; ; begun = true {
		message, err := readMessage(client, begun)
		if err != nil {
			return
		}
		if begun {
			name, text := splitMessage(message)
			switch message[0] {
			case 'P':
				notifies[name] = strings.Contains(text, "pg_notify")
				skip = skip || notifies[name]
			case 'B': // of a portal without a name
				statement, _, _ := strings.Cut(text, "\x00")
				skip = skip || notifies[statement]
			case 'E':
				n.statements.Add(1)
			case 'S', 'Q':
				if !skip && !strings.Contains(name, "LISTEN") {
					n.n.Add(1)
				}
				skip = false
			}
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// readMessage reads a message. The first of a connection has no type.
func readMessage(r io.Reader, typed bool) ([]byte, error) {
	at := 0
	if typed {
		at = 1
	}
	message := make([]byte, at+4)
	if _, err := io.ReadFull(r, message); err != nil {
		return nil, err
	}
	body := make([]byte, int(binary.BigEndian.Uint32(message[at:]))-4)
	_, err := io.ReadFull(r, body)
	return append(message, body...), err
}

// splitMessage splits the content of a message after its first string.
func splitMessage(message []byte) (name, rest string) {
	name, rest, _ = strings.Cut(string(message[5:]), "\x00")
	return name, rest
}
