package awsconfig

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/s3api"
)

// ErrSettings says that what the environment or the shared files say cannot be used.
var ErrSettings = fault.New(fault.Invalid, "the settings for AWS cannot be used")

// Settings is what the environment and the shared files say.
type Settings struct {
	// Region is empty if nothing names one.
	Region string
	// Roots are nil for those of the system.
	Roots *x509.CertPool
	// Credentials come from the usual sources.
	Credentials s3api.Credentials

	files   *files
	name    string // of the profile
	profile section
}

// Load reads the settings. It connects to nothing and starts no program; Credentials do. A
// region counts more than that of the settings.
func Load(region string) (*Settings, error) {
	f, err := readFiles()
	if err != nil {
		return nil, err
	}
	name, chosen := profileName()
	if chosen && f.profiles[name] == nil {
		return nil, fmt.Errorf("%w: no shared file has the profile %q", ErrSettings, name)
	}
	s := &Settings{files: f, name: name, profile: f.profiles[name]}
	s.Region = cmp.Or(region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), s.profile["region"])
	if s.Roots, err = roots(cmp.Or(os.Getenv("AWS_CA_BUNDLE"), s.profile["ca_bundle"])); err != nil {
		return nil, err
	}
	source := &source{settings: s, client: s3api.NewHTTP(sourceTimeout, s.Roots)}
	s.Credentials = Cached(source.keys)
	return s, nil
}

// roots reads the certificates of a file, which replace those of the system.
func roots(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: read the certificates of AWS_CA_BUNDLE: %w", ErrSettings, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%w: %s, which AWS_CA_BUNDLE names, has no certificate", ErrSettings, path)
	}
	return pool, nil
}

// Endpoint returns the endpoint that the settings name for a service, such as S3, or nothing.
func (s *Settings) Endpoint(service string) string {
	if on(cmp.Or(os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), s.profile["ignore_configured_endpoint_urls"])) {
		return ""
	}
	own := s.files.services[s.profile["services"]]
	return cmp.Or(
		os.Getenv("AWS_ENDPOINT_URL_"+service), os.Getenv("AWS_ENDPOINT_URL"),
		own[strings.ToLower(service)+".endpoint_url"], s.profile["endpoint_url"],
	)
}

// HostOf returns the name that the host of a service begins with. Some must use those whose
// cryptography is validated (FIPS).
func (s *Settings) HostOf(service string) string {
	if on(cmp.Or(os.Getenv("AWS_USE_FIPS_ENDPOINT"), s.profile["use_fips_endpoint"])) {
		return service + "-fips"
	}
	return service
}

func on(text string) bool { return strings.EqualFold(text, "true") }
