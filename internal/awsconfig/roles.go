package awsconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stet-dev/stet/internal/s3api"
)

// assumeRole exchanges keys for those of the role of a profile.
func (s *source) assumeRole(ctx context.Context, p section, keys s3api.Keys) (s3api.Keys, error) {
	form := url.Values{"Action": {"AssumeRole"}, "RoleArn": {p["role_arn"]}, "DurationSeconds": {duration(p["duration_seconds"])}}
	if id := p["external_id"]; id != "" {
		form.Set("ExternalId", id)
	}
	return s.exchange(ctx, form, p["role_session_name"], &keys)
}

// duration returns how long the keys of a role are to be valid, in seconds.
func duration(text string) string {
	const shortest = 15 * 60
	if seconds, err := strconv.Atoi(text); err == nil && seconds > shortest {
		return strconv.Itoa(seconds)
	}
	return strconv.Itoa(shortest)
}

// webIdentity exchanges the token in a file for the keys of a role.
func (s *source) webIdentity(ctx context.Context, file, role, session string) (s3api.Keys, error) {
	if role == "" {
		return s3api.Keys{}, fmt.Errorf("%w: there is a file with a web identity and no role: set AWS_ROLE_ARN", ErrSettings)
	}
	token, err := os.ReadFile(file) // it changes from time to time
	if err != nil {
		return s3api.Keys{}, fmt.Errorf("read the web identity for the role: %w", err)
	}
	form := url.Values{"Action": {"AssumeRoleWithWebIdentity"}, "RoleArn": {role}, "WebIdentityToken": {string(token)}}
	return s.exchange(ctx, form, session, nil)
}

// exchange asks the service STS for the keys of a role. A request without keys is not signed.
func (s *source) exchange(ctx context.Context, form url.Values, session string, keys *s3api.Keys) (s3api.Keys, error) {
	got, err := s.askSTS(ctx, form, session, keys)
	if err != nil {
		return s3api.Keys{}, fmt.Errorf("take on the role %s: %w", form.Get("RoleArn"), err)
	}
	return got, nil
}

func (s *source) askSTS(ctx context.Context, form url.Values, session string, keys *s3api.Keys) (s3api.Keys, error) {
	region := cmp.Or(s.settings.Region, "us-east-1")
	endpoint := s.settings.Endpoint("STS")
	if endpoint == "" {
		var err error
		if endpoint, err = s3api.Endpoint(s.settings.HostOf("sts"), region); err != nil {
			return s3api.Keys{}, err
		}
	}
	form.Set("Version", "2011-06-15")
	form.Set("RoleSessionName", cmp.Or(session, "stet-"+strconv.FormatInt(time.Now().UnixNano(), 10)))
	body := form.Encode()
	build := func(now time.Time) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(endpoint, "/")+"/", strings.NewReader(body))
		if err != nil {
			return nil, errors.New("invalid endpoint of STS")
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		if keys != nil {
			s3api.Sign(req, *keys, s3api.Scope{Region: s3api.SigningRegion(region), Service: "sts"}, s3api.Hash([]byte(body)), now)
		}
		return req, nil
	}
	defer s.client.CloseIdleConnections() // it is long until the next request
	sender := &s3api.Sender{HTTP: s.client, MaxAttempts: 3, MaxWait: 5 * time.Second}
	var got s3api.Keys
	err := sender.Do(ctx, build, func(res *http.Response) (err error) {
		got, err = s3api.ReadKeys(res)
		return err
	})
	return got, err
}
