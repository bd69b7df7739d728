package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/adrg/xdg"

	"github.com/stet-dev/stet/internal/private"
)

// ownToken returns the token of a server that this user runs on this machine, or "": the
// one in serve.token_file or in the usual store. It is given only to a process of the same
// user, because any program may listen on a port of the loopback interface.
func (a *app) ownToken(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	ip, err := netip.ParseAddr(u.Hostname())
	port, portErr := strconv.ParseUint(u.Port(), 10, 16)
	loopback := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	if !loopback || portErr != nil || !listensHere(uint16(port), os.Getuid()) {
		return ""
	}
	var files []string
	if all, err := a.settings(); err == nil {
		if path := all.text("serve.token_file"); path != "" {
			files = append(files, path)
		}
		if dir := all.text("store"); dir != "" && !strings.Contains(dir, "://") {
			files = append(files, filepath.Join(dir, "token"))
		}
	}
	if dir := os.Getenv("STET_STORE"); dir != "" && !strings.Contains(dir, "://") {
		files = append(files, filepath.Join(dir, "token"))
	}
	for _, path := range append(files, filepath.Join(xdg.DataHome, "stet", "token")) {
		if data, err := private.ReadFile(path); err == nil {
			return strings.TrimSpace(string(data))
		}
	}
	return ""
}

// pageOf says where a page of the server of this user is, whether it runs or not.
func (a *app) pageOf(path string) string {
	later := "stet serve, then " + path
	all, err := a.settings()
	if err != nil {
		return later
	}
	address := all.text("serve.listen")
	_, text, err := net.SplitHostPort(address)
	port, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil || port == 0 || !listensHere(uint16(port), os.Getuid()) {
		return later
	}
	return "http://" + address + path
}

// listensHere reports whether every process that listens on a TCP port of this machine is
// one of the user. Where the system does not say, it is not.
func listensHere(port uint16, uid int) bool {
	found := false
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		own, listens := listeners(file, port, uid)
		file.Close()
		if listens && !own {
			return false
		}
		found = found || listens
	}
	return found
}

// listeners reads the kernel's table of sockets.
func listeners(table io.Reader, port uint16, uid int) (own, listens bool) {
	const listening = "0A"
	own = true
	suffix := fmt.Sprintf(":%04X", port)
	for lines := bufio.NewScanner(table); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 8 || f[3] != listening || !strings.HasSuffix(f[1], suffix) {
			continue
		}
		listens = true
		own = own && f[7] == strconv.Itoa(uid)
	}
	return own, listens
}
