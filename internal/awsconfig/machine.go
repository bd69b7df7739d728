package awsconfig

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/stet-dev/stet/internal/s3api"
)

// machine asks the metadata service of a machine of EC2 for the keys of its role. Only the
// version with a token is used: the other one answers whoever can make this machine ask.
func (s *source) machine(ctx context.Context) (s3api.Keys, error) {
	if on(os.Getenv("AWS_EC2_METADATA_DISABLED")) {
		return s3api.Keys{}, fmt.Errorf("%w: nothing names keys, and AWS_EC2_METADATA_DISABLED keeps stet from asking the machine", ErrSettings)
	}
	endpoint, err := s.machineEndpoint()
	if err != nil {
		return s3api.Keys{}, err
	}
	keys, err := machineKeys(ctx, strings.TrimRight(endpoint, "/")+"/latest")
	if err != nil {
		return s3api.Keys{}, fmt.Errorf("nothing names keys, and the machine has none: %w", err)
	}
	return keys, nil
}

func (s *source) machineEndpoint() (string, error) {
	mode := cmp.Or(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"), s.settings.profile["ec2_metadata_service_endpoint_mode"], "IPv4")
	usual := "http://169.254.169.254"
	switch {
	case strings.EqualFold(mode, "IPv6"):
		usual = "http://[fd00:ec2::254]"
	case !strings.EqualFold(mode, "IPv4"):
		return "", fmt.Errorf("%w: AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE must be IPv4 or IPv6", ErrSettings)
	}
	return cmp.Or(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), s.settings.profile["ec2_metadata_service_endpoint"], usual), nil
}

func machineKeys(ctx context.Context, base string) (s3api.Keys, error) {
	// Most machines are none of EC2, and nothing answers there.
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	sender := &s3api.Sender{HTTP: neighbour, MaxAttempts: 2, MaxWait: 100 * time.Millisecond}
	token, err := fetch(ctx, sender, http.MethodPut, base+"/api/token", http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"300"}})
	if err != nil {
		return s3api.Keys{}, fmt.Errorf("ask the metadata service for a token: %w", err)
	}
	header := http.Header{"X-Aws-Ec2-Metadata-Token": {string(token)}}
	const roles = "/meta-data/iam/security-credentials/"
	text, err := fetch(ctx, sender, http.MethodGet, base+roles, header)
	if err != nil {
		return s3api.Keys{}, fmt.Errorf("ask the metadata service for the role of the machine: %w", err)
	}
	role, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if role == "" {
		return s3api.Keys{}, fmt.Errorf("%w: the machine has no role", ErrSettings)
	}
	if text, err = fetch(ctx, sender, http.MethodGet, base+roles+role, header); err != nil {
		return s3api.Keys{}, fmt.Errorf("ask the metadata service for the keys of the role: %w", err)
	}
	keys, _, err := parseKeys(text)
	return keys, err
}
