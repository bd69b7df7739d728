package awsconfig_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/awsconfig"
)

const expiration = "2126-01-02T03:04:05Z"

var expires = time.Date(2126, 1, 2, 3, 4, 5, 0, time.UTC)

// sts serves keys of roles. It notes what it was asked.
type sts struct {
	asked  []string
	answer string // instead of keys
	status int
}

// ServeHTTP implements http.Handler.
func (s *sts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	f := r.PostForm
	signer, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), ",")
	s.asked = append(s.asked, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %s|%s", f.Get("Action"), f.Get("RoleArn"), f.Get("DurationSeconds"), f.Get("ExternalId"), f.Get("WebIdentityToken"), f.Get("RoleSessionName"), signer)))
	if s.status != 0 {
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, s.answer)
		return
	}
	name := f.Get("Action")
	fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><AssumedRoleUser/><Credentials><AccessKeyId>of-%[2]s</AccessKeyId>
		<SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken><Expiration>%[3]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`, name, f.Get("RoleArn"), expiration)
}

func startSTS(t *testing.T) *sts {
	t.Helper()
	s := &sts{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
	return s
}

func TestRoles(t *testing.T) {
	shared(t, `[profile base]
aws_access_key_id = base
aws_secret_access_key = canary
[profile role]
role_arn = r1
source_profile = base
region = eu-west-1
role_session_name = me
external_id = ext
duration_seconds = 3600
[profile chain]
role_arn = r2
source_profile = role
[profile own]
role_arn = r3
source_profile = own
aws_access_key_id = own
aws_secret_access_key = canary
[profile env]
role_arn = r4
credential_source = Environment
[profile circle]
role_arn = r5
source_profile = circle2
[profile circle2]
role_arn = r6
source_profile = circle
[profile lost]
role_arn = r7
source_profile = nowhere
[profile noarn]
source_profile = base
[profile two]
role_arn = r8
source_profile = base
credential_source = Environment
[profile device]
role_arn = r9
source_profile = base
mfa_serial = arn:device
[profile strange]
role_arn = r10
credential_source = Moon
[profile task]
role_arn = r11
credential_source = EcsContainer
`, "")
	service := startSTS(t)
	date := "/" + time.Now().UTC().Format("20060102")
	for _, c := range []struct {
		profile, access string
		asked           []string
	}{
		{"role", "of-r1", []string{"AssumeRole r1 3600 ext  me|base" + date + "/eu-west-1/sts/aws4_request"}},
		{"chain", "of-r2", []string{"AssumeRole r1 3600 ext  me|base", "AssumeRole r2 900   stet-"}},
		{"own", "of-r3", []string{"AssumeRole r3 900   stet-"}},
	} {
		service.asked = nil
		t.Setenv("AWS_PROFILE", c.profile)
		if got := wantKeys(t, c.access, "secret", "session"); !got.Expires.Equal(expires) {
			t.Errorf("%s: expires %s", c.profile, got.Expires)
		}
		if len(service.asked) != len(c.asked) {
			t.Errorf("%s: asked %q, want %q", c.profile, service.asked, c.asked)
			continue
		}
		for i, want := range c.asked {
			if !strings.HasPrefix(service.asked[i], want) {
				t.Errorf("%s: asked %q, want %q", c.profile, service.asked[i], want)
			}
		}
	}
	for profile, says := range map[string]string{
		"circle": "is its own source_profile", "lost": `names the source_profile "nowhere"`, "noarn": "no role_arn", "two": "has both",
		"device": "mfa_serial", "strange": "must be Environment", "task": "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "env": "has no AWS_ACCESS_KEY_ID",
	} {
		t.Setenv("AWS_PROFILE", profile)
		wantError(t, says)
	}
	t.Setenv("AWS_PROFILE", "role")
	service.status, service.answer = 403, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>"
	wantError(t, "take on the role r1: AccessDenied: not you")
	service.status, service.answer = 200, "<AssumeRoleResponse><AssumeRoleResult/></AssumeRoleResponse>"
	wantError(t, "it has no keys")
}

// TestRoleWithKeysOfTheEnvironment sets them as a profile sees them: keys of the environment
// count more than a profile, unless this names them.
func TestRoleWithKeysOfTheEnvironment(t *testing.T) {
	shared(t, "[profile env]\nrole_arn = r4\ncredential_source = Environment\n", "")
	startSTS(t)
	t.Setenv("AWS_PROFILE", "env")
	t.Setenv("AWS_ACCESS_KEY_ID", "env")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "env-secret")
	wantKeys(t, "env", "env-secret", "")
}

func TestWebIdentity(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	shared(t, "[profile web]\nrole_arn = r2\nrole_session_name = me\nweb_identity_token_file = "+file+"\n", "")
	service := startSTS(t)
	t.Setenv("AWS_PROFILE", "web")
	wantKeys(t, "of-r2", "secret", "session")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
	wantError(t, "set AWS_ROLE_ARN")
	t.Setenv("AWS_ROLE_ARN", "r1")
	t.Setenv("AWS_ROLE_SESSION_NAME", "env")
	wantKeys(t, "of-r1", "secret", "session")
	want := []string{"AssumeRoleWithWebIdentity r2   canary me|", "AssumeRoleWithWebIdentity r1   canary env|"}
	if len(service.asked) != 2 || service.asked[0] != want[0] || service.asked[1] != want[1] {
		t.Errorf("asked %q, want %q", service.asked, want)
	}
	service.status, service.answer = 400, "<ErrorResponse><Error><Code>ExpiredTokenException</Code></Error></ErrorResponse>"
	wantError(t, "ExpiredTokenException")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file+"-none")
	wantError(t, "read the web identity")
}

func TestContainer(t *testing.T) {
	alone(t)
	var answer string
	var authorization []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = append(authorization, r.URL.Path+" "+r.Header.Get("Authorization"))
		if answer == "" {
			w.WriteHeader(404)
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	defer awsconfig.SetTaskHost(server.URL)()
	answer = `{"AccessKeyId":"task","SecretAccessKey":"secret","Token":"session","Expiration":"` + expiration + `"}`
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.URL+"/full")
	if got := wantKeys(t, "task", "secret", "session"); !got.Expires.Equal(expires) {
		t.Errorf("expires %s", got.Expires)
	}
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "token")
	wantKeys(t, "task", "secret", "session")
	file := filepath.Join(t.TempDir(), "token")
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file)
	wantError(t, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
	for text, ok := range map[string]bool{"of the file": true, "canary\r\nX: y": false} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if ok {
			t.Setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/relative")
			wantKeys(t, "task", "secret", "session")
			t.Setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "")
		} else {
			wantError(t, "more than one line")
		}
	}
	want := "/full |/full token|/relative of the file"
	if got := strings.Join(authorization, "|"); got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "")
	for text, says := range map[string]string{
		"": "status 404", "canary": "not the JSON of keys", "{}": "no keys", `{"AccessKeyId":"a","Code":"C","Message":"m"}`: "no keys: C m",
		`{"AccessKeyId":"a","SecretAccessKey":"canary","Expiration":"canary"}`: "not the JSON of keys",
	} {
		answer = text
		wantError(t, says)
	}
	for _, bad := range []string{"http://10.0.0.1/", "http://169.254.169.254/", "ftp://127.0.0.1/", "canary", "http:///x"} {
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", bad)
		wantError(t, "AWS_CONTAINER_CREDENTIALS_FULL_URI must be")
	}
}

// TestMachine has a metadata service that answers only with a token.
func TestMachine(t *testing.T) {
	alone(t)
	role, keys := "role\n", `{"Code":"Success","AccessKeyId":"machine","SecretAccessKey":"secret","Token":"session","Expiration":"`+expiration+`"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" && r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") != "" {
			_, _ = io.WriteString(w, "token")
			return
		}
		if r.Header.Get("X-aws-ec2-metadata-token") != "token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/latest/meta-data/iam/security-credentials/":
			_, _ = io.WriteString(w, role)
		case "/latest/meta-data/iam/security-credentials/role":
			_, _ = io.WriteString(w, keys)
		default:
			w.WriteHeader(404)
		}
	}))
	defer server.Close()
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.URL+"/")
	wantError(t, "AWS_EC2_METADATA_DISABLED")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	if got := wantKeys(t, "machine", "secret", "session"); !got.Expires.Equal(expires) {
		t.Errorf("expires %s", got.Expires)
	}
	keys = `{"Code":"Failed","Message":"no such role"}`
	wantError(t, "no keys: Failed no such role")
	role = ""
	wantError(t, "the machine has no role")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv5")
	wantError(t, "must be IPv4 or IPv6")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "")
	server.Close()
	wantError(t, "the machine has none")
}

// TestProgram runs programs that give out keys.
func TestProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("the programs are shell scripts")
		return
	}
	for command, says := range map[string]string{
		`echo '{"Version":1,"AccessKeyId":"program","SecretAccessKey":"secret","SessionToken":"session","Expiration":"` + expiration + `"}'`: "",
		`echo '{"Version":2,"AccessKeyId":"program","SecretAccessKey":"canary"}'`:                                                            "version 2",
		"echo canary":   "not the JSON of keys",
		"exit 3":        "exit status 3",
		"echo '{}'; :;": "no keys",
	} {
		shared(t, "[default]\ncredential_process = "+command+"\n", "")
		if says != "" {
			wantError(t, says)
		} else if got := wantKeys(t, "program", "secret", "session"); !got.Expires.Equal(expires) {
			t.Errorf("expires %s", got.Expires)
		}
	}
}

// TestSignedInProfiles leaves profiles that sign in to the program aws.
func TestSignedInProfiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("the program is a shell script")
		return
	}
	for _, profile := range []string{"sso_session = s\nsso_account_id = 1", "sso_start_url = u", "login_session = arn"} {
		shared(t, "[profile me]\n"+profile+"\n[sso-session s]\nsso_region = x\n", "")
		t.Setenv("AWS_PROFILE", "me")
		path, bin := os.Getenv("PATH"), t.TempDir()
		t.Setenv("PATH", bin)
		wantError(t, "install the AWS CLI")
		t.Setenv("PATH", bin+string(os.PathListSeparator)+path)
		program := func(text string) {
			if err := os.WriteFile(filepath.Join(bin, "aws"), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		program(`[ "$*" = "configure export-credentials --profile me --format process" ] && echo '{"Version":1,"AccessKeyId":"sso","SecretAccessKey":"secret","SessionToken":"session"}'`)
		wantKeys(t, "sso", "secret", "session")
		program("echo one >&2; echo 'the session has expired' >&2; exit 255")
		wantError(t, "the session has expired")
		t.Setenv("PATH", path)
	}
}
