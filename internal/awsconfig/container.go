package awsconfig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/stet-dev/stet/internal/s3api"
)

// maxAnswer is more than keys take.
const maxAnswer = 1 << 20

// taskHost is where a container of ECS finds its keys.
var taskHost = "http://169.254.170.2"

// containerHosts are those of ECS and EKS.
var containerHosts = []string{"169.254.170.2", "169.254.170.23", "fd00:ec2::23"}

func inContainer() bool {
	return os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" || os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") != ""
}

// container asks the agent beside a container (ECS, EKS Pod Identity).
func (s *source) container(ctx context.Context) (s3api.Keys, error) {
	keys, err := s.containerKeys(ctx)
	if err != nil {
		return s3api.Keys{}, fmt.Errorf("ask for the keys of the container: %w", err)
	}
	return keys, nil
}

func (s *source) containerKeys(ctx context.Context) (s3api.Keys, error) {
	address := os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if path := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		address = taskHost + path
	} else if err := checkContainerAddress(ctx, address); err != nil {
		return s3api.Keys{}, err
	}
	token, err := containerToken()
	if err != nil {
		return s3api.Keys{}, err
	}
	sender := &s3api.Sender{HTTP: s.direct(address), MaxAttempts: 3, MaxWait: time.Second}
	text, err := fetch(ctx, sender, http.MethodGet, address, http.Header{"Authorization": {token}, "Accept": {"application/json"}})
	if err != nil {
		return s3api.Keys{}, err
	}
	keys, _, err := parseKeys(text)
	return keys, err
}

// containerToken returns what shows the agent who asks, or nothing.
func containerToken() (string, error) {
	token := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if path := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); path != "" {
		text, err := os.ReadFile(path) // it changes from time to time
		if err != nil {
			return "", fmt.Errorf("read AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: %w", err)
		}
		token = string(text)
	}
	if strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("%w: the token for the keys of the container has more than one line", ErrSettings)
	}
	return token, nil
}

// checkContainerAddress rejects an address to which the token must not go in clear text.
func checkContainerAddress(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%w: AWS_CONTAINER_CREDENTIALS_FULL_URI must be an http:// or https:// address", ErrSettings)
	case u.Scheme == "https":
		return nil
	}
	hosts := []string{u.Hostname()}
	if net.ParseIP(hosts[0]) == nil {
		if hosts, err = net.DefaultResolver.LookupHost(ctx, hosts[0]); err != nil {
			return fmt.Errorf("look for the host of AWS_CONTAINER_CREDENTIALS_FULL_URI: %w", err)
		}
	}
	for _, host := range hosts {
		if !containerHost(net.ParseIP(host)) {
			return fmt.Errorf("%w: the host of AWS_CONTAINER_CREDENTIALS_FULL_URI must be this machine or the agent of ECS or EKS, or its scheme https", ErrSettings)
		}
	}
	return nil
}

func containerHost(ip net.IP) bool {
	if ip == nil {
		return false
	}
	for _, known := range containerHosts {
		if ip.Equal(net.ParseIP(known)) {
			return true
		}
	}
	return ip.IsLoopback()
}

// direct returns a client that uses no proxy for addresses in clear text: they are beside this
// machine.
func (s *source) direct(address string) *http.Client {
	if strings.HasPrefix(address, "https://") {
		return s.client
	}
	return neighbour
}

// neighbour is the client for services beside this machine. They answer at once, or are not
// there.
var neighbour = &http.Client{
	Timeout:       2 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{DisableKeepAlives: true},
}

// fetch requests a small answer.
func fetch(ctx context.Context, sender *s3api.Sender, method, address string, header http.Header) (text []byte, err error) {
	build := func(time.Time) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, method, address, nil)
		if err != nil {
			return nil, errors.New("invalid address")
		}
		for name, values := range header {
			if values[0] != "" {
				req.Header[name] = values
			}
		}
		return req, nil
	}
	err = sender.Do(ctx, build, func(res *http.Response) error {
		defer res.Body.Close()
		text, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		return err
	})
	return text, err
}
