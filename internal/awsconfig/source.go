package awsconfig

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/stet-dev/stet/internal/s3api"
)

// source obtains keys as the settings say.
type source struct {
	settings *Settings
	client   *http.Client
}

// keys obtains keys from the environment or the profile.
func (s *source) keys(ctx context.Context) (s3api.Keys, error) {
	keys, err := environmentKeys()
	switch file := os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"); {
	case err != nil || keys.Complete():
		return keys, err
	case file != "":
		return s.webIdentity(ctx, file, os.Getenv("AWS_ROLE_ARN"), os.Getenv("AWS_ROLE_SESSION_NAME"))
	}
	return s.profile(ctx, s.settings.name, nil)
}

// environmentKeys returns the keys of the environment, or none.
func environmentKeys() (s3api.Keys, error) {
	keys := s3api.Keys{
		Access:  cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_ACCESS_KEY")),
		Secret:  cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SECRET_KEY")),
		Session: os.Getenv("AWS_SESSION_TOKEN"),
	}
	if (keys.Access == "") != (keys.Secret == "") {
		return s3api.Keys{}, fmt.Errorf("%w: only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set; set both or none", ErrSettings)
	}
	return keys, nil
}

// profile obtains the keys of a profile. It is called for a profile that others name as their
// source with the names of these.
func (s *source) profile(ctx context.Context, name string, users []string) (s3api.Keys, error) {
	p := s.settings.files.profiles[name]
	static := s3api.Keys{Access: p["aws_access_key_id"], Secret: p["aws_secret_access_key"], Session: p["aws_session_token"]}
	again := slices.Contains(users, name)
	switch {
	case (static.Access == "") != (static.Secret == ""):
		return s3api.Keys{}, fmt.Errorf("%w: the profile %q has only one of aws_access_key_id and aws_secret_access_key", ErrSettings, name)
	case len(users) > 0 && p == nil:
		return s3api.Keys{}, fmt.Errorf("%w: the profile %q names the source_profile %q, which no shared file has", ErrSettings, users[len(users)-1], name)
	case len(users) > 0 && static.Complete():
		return static, nil // a profile may also name itself, for its own keys
	case again:
		return s3api.Keys{}, fmt.Errorf("%w: the profile %q is its own source_profile and has no keys", ErrSettings, name)
	}
	if err := checkProfile(name, p); err != nil {
		return s3api.Keys{}, err
	}
	if file := p["web_identity_token_file"]; file != "" && !static.Complete() {
		return s.webIdentity(ctx, file, p["role_arn"], p["role_session_name"])
	}
	keys, err := s.ownKeys(ctx, name, p, static, append(users, name))
	if err != nil || p["role_arn"] == "" {
		return keys, err
	}
	return s.assumeRole(ctx, p, keys)
}

// checkProfile rejects what means nothing, or more than one thing.
func checkProfile(name string, p section) error {
	var kinds []string
	for _, kind := range []string{"source_profile", "credential_source", "credential_process", "web_identity_token_file"} {
		if p[kind] != "" {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) > 1 {
		return fmt.Errorf("%w: the profile %q has both %s and %s", ErrSettings, name, kinds[0], kinds[1])
	}
	if len(kinds) == 1 && kinds[0] != "credential_process" && p["role_arn"] == "" {
		return fmt.Errorf("%w: the profile %q has %s and no role_arn", ErrSettings, name, kinds[0])
	}
	if p["role_arn"] != "" && p["mfa_serial"] != "" {
		return fmt.Errorf("%w: the role of the profile %q needs a code of a device (mfa_serial), for which stet cannot ask; "+
			"set credential_process to a program that does, or take keys from aws configure export-credentials", ErrSettings, name)
	}
	return nil
}

// ownKeys obtains the keys of a profile before it takes on a role.
func (s *source) ownKeys(ctx context.Context, name string, p section, static s3api.Keys, users []string) (s3api.Keys, error) {
	switch {
	case p["source_profile"] != "":
		return s.profile(ctx, p["source_profile"], users)
	case static.Complete():
		return static, nil
	case p["credential_source"] != "":
		return s.namedSource(ctx, name, p["credential_source"])
	case p["sso_session"] != "" || p["sso_start_url"] != "" || p["sso_account_id"] != "" || p["login_session"] != "":
		return s.signedIn(ctx, name)
	case p["credential_process"] != "":
		return process(ctx, p["credential_process"])
	case inContainer():
		return s.container(ctx)
	}
	return s.machine(ctx)
}

func (s *source) namedSource(ctx context.Context, name, kind string) (s3api.Keys, error) {
	switch kind {
	case "Environment":
		keys, err := environmentKeys()
		if err == nil && !keys.Complete() {
			err = fmt.Errorf("%w: the profile %q takes its keys from the environment, which has no AWS_ACCESS_KEY_ID", ErrSettings, name)
		}
		return keys, err
	case "EcsContainer":
		if !inContainer() {
			return s3api.Keys{}, fmt.Errorf("%w: the profile %q takes its keys from the container, and AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and _FULL_URI are not set", ErrSettings, name)
		}
		return s.container(ctx)
	case "Ec2InstanceMetadata":
		return s.machine(ctx)
	}
	return s3api.Keys{}, fmt.Errorf("%w: the credential_source of the profile %q must be Environment, EcsContainer or Ec2InstanceMetadata", ErrSettings, name)
}
