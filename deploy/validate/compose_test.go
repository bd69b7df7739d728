package validate_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// project loads the compose file as docker compose does: with its schema, the variables
// put in, and references resolved.
func project(t *testing.T, profile string, env ...string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../compose.yaml"}, cli.WithEnv(env), cli.WithProfiles([]string{profile}), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(context.Background())
}

var passwords = []string{"DB_PASSWORD=d", "S3_SECRET=s"}

func TestComposeFileIsAProject(t *testing.T) {
	p, err := project(t, "admin", passwords...)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(p.ServiceNames(), " "), "admin bucket database node1 node2"; got != want {
		t.Errorf("services %s, want %s", got, want)
	}
	published := make(map[string]string)
	for name, s := range p.Services {
		for _, port := range s.Ports {
			if other := published[port.Published]; other != "" || port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s at %q, %q does so, too", name, port.Published, port.HostIP, other)
			}
			published[port.Published] = name
		}
		for _, v := range s.Volumes {
			if _, ok := p.Volumes[v.Source]; !ok {
				t.Errorf("%s mounts the volume %s, which is not there", name, v.Source)
			}
		}
		if s.Build != nil {
			if _, err := filepath.Abs(s.Build.Context); err != nil || s.Build.Dockerfile == "" {
				t.Errorf("%s is built from %+v", name, s.Build)
			}
		}
		if s.Image != "stet:local" {
			continue
		}
		if got := s.Environment["PGPASSWORD"]; got == nil || *got != "d" {
			t.Errorf("%s has no password of the database", name)
		}
		if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") || s.DependsOn["database"].Condition != types.ServiceConditionHealthy {
			t.Errorf("%s: read-only %v, drops %v, depends on %v", name, s.ReadOnly, s.CapDrop, s.DependsOn)
		}
	}
	without, err := project(t, "", passwords...)
	if err != nil || slices.Contains(without.ServiceNames(), "admin") {
		t.Errorf("up would start %v, %v", without.ServiceNames(), err)
	}
}

func TestComposeFileWantsPasswords(t *testing.T) {
	for i := range passwords {
		if _, err := project(t, "", passwords[i]); err == nil || !strings.Contains(err.Error(), "set it in deploy/.env") {
			t.Errorf("with %s only: %v", passwords[i], err)
		}
	}
}
