package awsconfig_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/awsconfig"
	"github.com/stet-dev/stet/internal/s3api"
)

// alone hides all settings of the machine, and keeps tests from asking it.
func alone(t *testing.T) (home string) {
	t.Helper()
	for _, line := range os.Environ() {
		if name, _, _ := strings.Cut(line, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return home
}

// shared writes the shared files.
func shared(t *testing.T, config, credentials string) {
	t.Helper()
	dir := filepath.Join(alone(t), ".aws")
	err := os.Mkdir(dir, 0o700)
	for name, text := range map[string]string{"config": config, "credentials": credentials} {
		if text != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T) *awsconfig.Settings {
	t.Helper()
	s, err := awsconfig.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantKeys(t *testing.T, access, secret, session string) s3api.Keys {
	t.Helper()
	got, err := load(t).Credentials(t.Context())
	if err != nil || got.Access != access || got.Secret != secret || got.Session != session {
		t.Errorf("got %s %s %s, %v, want %s %s %s", got.Access, got.Secret, got.Session, err, access, secret, session)
	}
	return got
}

// wantError expects an error, which shows no secret.
func wantError(t *testing.T, says string) {
	t.Helper()
	s, err := awsconfig.Load("")
	if err == nil {
		_, err = s.Credentials(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v, want an error that says %q and no secret", err, says)
	}
}

func TestProfiles(t *testing.T) {
	const config = `
# a comment
stray = line before all sections
[default]
region = eu-west-1   # a comment
AWS_ACCESS_KEY_ID: default-config
aws_secret_access_key = "s#ecret ; x"
[profile default]
region=eu-central-1
aws_access_key_id = default
aws_secret_access_key = s#ecret
[profile  spaced name ]
aws_access_key_id='quoted'
aws_secret_access_key=a=b:c
  aws_session_token = indented, and not a block
[both]
region = not a profile of this file
[profile both]
region = us-west-2
aws_access_key_id = old
aws_secret_access_key = old-secret
aws_session_token = old-session
[profile half]
aws_access_key_id = half
[profile twice]
aws_access_key_id = a
[profile twice]
aws_secret_access_key = b
nonsense
`
	const credentials = `[both]
aws_access_key_id = new
aws_secret_access_key = new-secret
[only]
aws_access_key_id = only
aws_secret_access_key = only-secret
aws_session_token = only-session
[mixed]
aws_secret_access_key = canary
`
	shared(t, config+"[profile mixed]\naws_access_key_id = mixed\naws_secret_access_key = canary\n", credentials)
	wantKeys(t, "default", "s#ecret", "")
	if got := load(t).Region; got != "eu-central-1" {
		t.Errorf("region: got %q", got)
	}
	for name, want := range map[string][3]string{
		"spaced name": {"quoted", "a=b:c", "indented, and not a block"},
		"both":        {"new", "new-secret", ""}, // without the session of the other file
		"only":        {"only", "only-secret", "only-session"},
		"twice":       {"a", "b", ""},
	} {
		t.Setenv("AWS_PROFILE", name)
		wantKeys(t, want[0], want[1], want[2])
	}
	t.Setenv("AWS_PROFILE", "both")
	if got := load(t).Region; got != "us-west-2" {
		t.Errorf("region of a profile: got %q", got)
	}
	for name, says := range map[string]string{"half": "only one of", "mixed": "only one of", "none": `no shared file has the profile "none"`} {
		t.Setenv("AWS_PROFILE", name)
		wantError(t, says)
	}
	t.Setenv("AWS_PROFILE", "")
	t.Setenv("AWS_DEFAULT_PROFILE", "only")
	wantKeys(t, "only", "only-secret", "only-session")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	wantError(t, "no shared file")
}

func TestUnreadableFile(t *testing.T) {
	alone(t)
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()) // a directory
	if _, err := awsconfig.Load(""); err == nil && runtime.GOOS != "windows" {
		t.Error("a shared file that cannot be read: no error")
	}
}

func TestEnvironment(t *testing.T) {
	shared(t, "[default]\nregion = eu-west-1\naws_access_key_id = file\naws_secret_access_key = file-secret\n", "")
	t.Setenv("AWS_ACCESS_KEY_ID", "env")
	wantError(t, "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "env-secret")
	t.Setenv("AWS_SESSION_TOKEN", "env-session")
	wantKeys(t, "env", "env-secret", "env-session")
	for _, variable := range []string{"AWS_DEFAULT_REGION", "AWS_REGION"} {
		t.Setenv(variable, variable)
		if got := load(t).Region; got != variable {
			t.Errorf("region: got %q, want %q", got, variable)
		}
	}
	if s, err := awsconfig.Load("mine"); err != nil || s.Region != "mine" {
		t.Errorf("region: got %v, %v", s, err)
	}
}

func TestNothing(t *testing.T) {
	alone(t)
	wantError(t, "nothing names keys")
	if s := load(t); s.Region != "" || s.Endpoint("S3") != "" || s.Roots != nil || s.HostOf("s3") != "s3" {
		t.Errorf("got %+v", s)
	}
}

func TestEndpoints(t *testing.T) {
	shared(t, `[default]
endpoint_url = http://profile
services = mine
use_fips_endpoint = true
[services mine]
s3 =
  endpoint_url = http://service
  other = x
dynamodb =
  endpoint_url = http://other
`, "")
	want := func(service, endpoint string) {
		t.Helper()
		if got := load(t).Endpoint(service); got != endpoint {
			t.Errorf("%s: got %q, want %q", service, got, endpoint)
		}
	}
	want("S3", "http://service")
	want("STS", "http://profile")
	if got := load(t).HostOf("s3"); got != "s3-fips" {
		t.Errorf("got %q", got)
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://env")
	want("S3", "http://env")
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://env-s3")
	want("S3", "http://env-s3")
	want("STS", "http://env")
	t.Setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
	want("S3", "")
}

func TestCertificates(t *testing.T) {
	alone(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	t.Setenv("AWS_CA_BUNDLE", file)
	wantError(t, "AWS_CA_BUNDLE")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "has no certificate")
}
