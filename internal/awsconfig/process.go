package awsconfig

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/stet-dev/stet/internal/s3api"
)

// answer is how programs, containers and machines write keys.
type answer struct {
	Version             int
	AccessKeyID         string `json:"AccessKeyId"`
	SecretAccessKey     string
	SessionToken, Token string
	Expiration          time.Time
	Code, Message       string
}

// parseKeys reads keys. Its errors do not quote what it reads.
func parseKeys(text []byte) (keys s3api.Keys, version int, err error) {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return s3api.Keys{}, 0, errors.New("the answer is not the JSON of keys")
	}
	keys = s3api.Keys{Access: a.AccessKeyID, Secret: a.SecretAccessKey, Session: cmp.Or(a.SessionToken, a.Token), Expires: a.Expiration}
	if !keys.Complete() {
		return s3api.Keys{}, 0, fmt.Errorf("the answer has no keys: %s", cmp.Or(strings.TrimSpace(a.Code+" "+a.Message), "no reason"))
	}
	return keys, a.Version, nil
}

// process asks the program of a profile.
func process(ctx context.Context, command string) (s3api.Keys, error) {
	cmd := shell(ctx, command)
	// It may have to ask for a code.
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	keys, err := programKeys(cmd)
	if err != nil {
		return s3api.Keys{}, fmt.Errorf("run the credential_process of the profile: %w", err)
	}
	return keys, nil
}

// signedIn asks the program aws for the keys of a profile that signs in.
func (s *source) signedIn(ctx context.Context, profile string) (s3api.Keys, error) {
	path, err := exec.LookPath("aws")
	if err != nil {
		return s3api.Keys{}, fmt.Errorf("%w: the profile %q signs in, for which stet needs the program aws: install the AWS CLI, then run aws sso login or aws login", ErrSettings, profile)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "configure", "export-credentials", "--profile", profile, "--format", "process")
	cmd.Stderr = &said
	keys, err := programKeys(cmd)
	if err != nil {
		return s3api.Keys{}, fmt.Errorf("ask the program aws for the keys of the profile %q: %w: %s", profile, err, lastLine(said.String()))
	}
	return keys, nil
}

func programKeys(cmd *exec.Cmd) (s3api.Keys, error) {
	// What the program started may hold its output open when it is gone.
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return s3api.Keys{}, err
	}
	keys, version, err := parseKeys(out)
	if err == nil && version != 1 {
		err = fmt.Errorf("it writes version %d of the format, not 1", version)
	}
	return keys, err
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
