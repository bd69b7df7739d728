package units_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// inside is what runs as a unit itself. It reports what it did; the last line says
// whether all of it was as expected.
func inside() int {
	if os.Getenv("STET_UNITS_LOOPBACK") == "1" {
		return ended(loopback())
	}
	err := look()
	journal, _ := exec.Command("journalctl", "--no-pager", "--output=short").CombinedOutput()
	if err := os.WriteFile("/out/journal", journal, 0o600); err != nil {
		fmt.Println(err)
	}
	if err == nil {
		fmt.Println("all is well")
	}
	return ended(err)
}

func ended(err error) int {
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// loopback brings up the one interface that a new network has.
func loopback() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(socket)
	var request struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "lo")
	request.flags = syscall.IFF_UP | syscall.IFF_RUNNING
	if _, _, code := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); code != 0 {
		return code
	}
	return nil
}

func look() error {
	type step struct {
		what string
		do   func() error
	}
	steps := []step{
		{"a tenant gets a token", func() error { return stet("tokens", "create", "shop", "--scope", "write") }},
		{"stet.service starts", func() error { return command("systemctl", "start", "stet.service") }},
		{"the node is ready", func() error { return answers("/readyz", "", http.StatusOK) }},
		{"it has no rights", restricted},
		{"its metrics need the operator's token", func() error { return answers("/metrics", "", http.StatusUnauthorized) }},
		{"with it they come", func() error { return answers("/metrics", operatorToken, http.StatusOK) }},
		{"stet-house.service keeps house", func() error { return command("systemctl", "start", "stet-house.service") }},
		{"stet-house.timer is set", timer},
		{"a node that was killed starts again", killed},
		{"stet.service stops", stopped},
		{"its directory stays", func() error { return command("test", "-d", "/var/lib/private/stet") }},
	}
	if _, err := os.Stat("/etc/try-image"); err == nil {
		steps = append(steps, []step{
			{"the image explains itself", func() error { return fromImage("image.service", "serve.listen") }},
			{"verbs of compose.yaml work in the image", func() error { return fromImage("compose-admin.service", "") }},
			{"a node of compose.yaml runs in the image", node},
		}...)
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Println(step.what)
	}
	return nil
}

func command(args ...string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%q: %w\n%s", args, err, out)
	}
	return nil
}

// property asks systemd about a unit.
func property(unit, name string) string {
	out, err := exec.Command("systemctl", "show", "--property="+name, "--value", unit).CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(out))
}

// stet runs a verb as an administrator does, with the files of /etc/stet.
func stet(args ...string) error {
	env, err := os.ReadFile("/etc/stet/stet.env")
	if err != nil {
		return err
	}
	cmd := exec.Command("/usr/bin/stet", args...)
	cmd.Env = []string{"HOME=/root", "PGPASSFILE=/etc/stet/pgpass", "AWS_SHARED_CREDENTIALS_FILE=/etc/stet/aws-credentials"}
	for line := range strings.Lines(string(env)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			cmd.Env = append(cmd.Env, line)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("stet %q: %w\n%s", args, err, out)
	}
	return nil
}

// answers waits until the node answers a call with a code.
func answers(path, token string, want int) error {
	return answered("stet.service", "https://localhost:7717"+path, token, want)
}

func answered(unit, url, token string, want int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // machines may be slow
	defer cancel()
	trusted := x509.NewCertPool()
	certificate, err := os.ReadFile("/etc/stet/cert.pem")
	if err != nil {
		return err
	}
	trusted.AppendCertsFromPEM(certificate)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
	for last := ""; ; {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s did not answer with %d; the last answer was %s", url, want, last)
		case err != nil:
			last = err.Error()
			if n := property(unit, "NRestarts"); len(n) > 1 || n > "4" || property(unit, "ActiveState") == "failed" {
				return fmt.Errorf("%s was started %s times again; %s", unit, n, last)
			}
		default:
			_ = response.Body.Close() // its code is enough
			if response.StatusCode == want {
				return nil
			}
			last = response.Status
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// restricted looks at the process: a user of its own, no capabilities, filtered calls.
func restricted() error {
	status, err := os.ReadFile("/proc/" + property("stet.service", "MainPID") + "/status")
	if err != nil {
		return err
	}
	for _, want := range []string{"\nCapEff:\t0000000000000000\n", "\nCapBnd:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n"} {
		if !strings.Contains(string(status), want) {
			return fmt.Errorf("it lacks %q:\n%s", want, status)
		}
	}
	if strings.Contains(string(status), "\nUid:\t0") {
		return fmt.Errorf("it runs as root:\n%s", status)
	}
	return nil
}

func timer() error {
	if err := command("systemctl", "start", "stet-house.timer"); err != nil {
		return err
	}
	if next := property("stet-house.timer", "NextElapseUSecRealtime"); !strings.Contains(next, " 03:") && !strings.Contains(next, " 04:00:00") {
		return fmt.Errorf("it runs next at %q", next)
	}
	return nil
}

func killed() error {
	before := property("stet.service", "MainPID")
	if err := command("kill", "-KILL", before); err != nil {
		return err
	}
	for range 600 {
		if after := property("stet.service", "MainPID"); after != before && after != "0" {
			return answers("/readyz", "", http.StatusOK)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("it did not start again: %s", property("stet.service", "ActiveState"))
}

func stopped() error {
	if err := command("systemctl", "stop", "stet.service"); err != nil {
		return err
	}
	if result, code := property("stet.service", "Result"), property("stet.service", "ExecMainStatus"); result != "success" || code != "0" {
		return fmt.Errorf("the result is %s, the exit code %s", result, code)
	}
	return nil
}

// fromImage starts a unit whose root is the image, and looks at what it printed.
func fromImage(unit, want string) error {
	if err := command("systemctl", "start", unit); err != nil {
		return err
	}
	if want == "" {
		return nil
	}
	if out, err := os.ReadFile("/out/explained"); err != nil || !strings.Contains(string(out), want) {
		return fmt.Errorf("it printed %s, %v", out, err)
	}
	return nil
}

// node starts a node of compose.yaml, which serves without a certificate.
func node() error {
	if err := command("systemctl", "start", "compose-node1.service"); err != nil {
		return err
	}
	if err := answered("compose-node1.service", "http://localhost:7717/readyz", "", http.StatusOK); err != nil {
		return err
	}
	return command("systemctl", "stop", "compose-node1.service")
}
