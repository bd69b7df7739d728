package deploy_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// render fills the chart's templates as helm does, with those of its functions that
// the chart uses, and returns what they give. Values stand above those of the chart.
func render(t *testing.T, above map[string]any) []map[string]any {
	t.Helper()
	values := documents(t, "values.yaml", read(t, "helm/stet/values.yaml"))[0]
	maps.Copy(values, above)
	data := map[string]any{"Values": values, "Release": map[string]any{"Name": "stet"}}
	set := template.New("").Option("missingkey=error")
	set.Funcs(template.FuncMap{
		"quote":      func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"int":        func(v any) int { return v.(int) },
		"join":       func(sep string, v any) string { return strings.Join(words(v), sep) },
		"contains":   func(part, s string) bool { return strings.Contains(s, part) },
		"hasSuffix":  func(end, s string) bool { return strings.HasSuffix(s, end) },
		"trimSuffix": func(end, s string) string { return strings.TrimSuffix(s, end) },
		"trunc":      func(n int, s string) string { return s[:min(n, len(s))] },
		"sha256sum":  func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) },
		"nindent":    func(n int, s string) string { return "\n" + indent(n, s) },
		"required": func(why string, v any) (any, error) {
			if v == nil || v == "" {
				return nil, fmt.Errorf("%s", why)
			}
			return v, nil
		},
		"toYaml": func(v any) (string, error) {
			out, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(out), "\n"), err
		},
		"include": func(name string, v any) (string, error) {
			var out bytes.Buffer
			err := set.ExecuteTemplate(&out, name, v)
			return out.String(), err
		},
	})
	files, err := filepath.Glob("helm/stet/templates/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		template.Must(set.New(filepath.Base(file)).Parse(read(t, file)))
	}
	var all []map[string]any
	for _, file := range files {
		var out bytes.Buffer
		if err := set.ExecuteTemplate(&out, filepath.Base(file), data); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".yaml") {
			all = append(all, documents(t, file, out.String())...)
		}
	}
	return all
}

func indent(n int, s string) string {
	pad := strings.Repeat(" ", n)
	return pad + strings.ReplaceAll(s, "\n", "\n"+pad)
}

// containers returns the containers of rendered objects.
func containers(t *testing.T, objects []map[string]any) []any {
	t.Helper()
	var all []any
	for _, o := range objects {
		for _, pod := range []any{at(o, "spec", "template", "spec"), at(o, "spec", "jobTemplate", "spec", "template", "spec")} {
			for _, kind := range []string{"initContainers", "containers"} {
				list, _ := at(pod, kind).([]any)
				all = append(all, list...)
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("the chart has no containers")
	}
	return all
}

func kinds(objects []map[string]any) []string {
	var out []string
	for _, o := range objects {
		kind, _ := o["kind"].(string)
		out = append(out, kind)
	}
	slices.Sort(out)
	return out
}

func TestChartMakesWhatItsValuesSay(t *testing.T) {
	objects := render(t, nil)
	if got, want := fmt.Sprint(kinds(objects)), "[CronJob Deployment PodDisruptionBudget Service]"; got != want {
		t.Errorf("objects: got %s, want %s", got, want)
	}
	for _, o := range objects {
		if at(o, "apiVersion") == nil || at(o, "metadata", "name") == nil {
			t.Errorf("an object without version or name: %v", o)
		}
	}
	var jobs []string
	house := map[string]any{"enabled": true, "tenants": []any{"shop", "my_shop", "my-shop"}, "schedule": "0 3 * * *", "idle": "30d", "grace": "24h"}
	for _, o := range render(t, map[string]any{"house": house}) {
		if name, _ := at(o, "metadata", "name").(string); o["kind"] == "CronJob" {
			jobs = append(jobs, name)
		}
	}
	if got, want := fmt.Sprint(jobs), "[stet-house-shop stet-house-6c8c0c216cf24d3f stet-house-my-shop]"; got != want {
		t.Errorf("jobs: got %s, want %s", got, want)
	}
	one := render(t, map[string]any{"replicas": 1, "house": map[string]any{"enabled": false, "tenants": nil}})
	if got, want := fmt.Sprint(kinds(one)), "[Deployment Service]"; got != want {
		t.Errorf("objects of one node: got %s, want %s", got, want)
	}
}

// TestChartUsesItsCertificate: with a secret for TLS nothing is served without.
func TestChartUsesItsCertificate(t *testing.T) {
	secrets := map[string]any{"environment": "e", "operator": "o", "tls": "certificate"}
	for name, want := range map[string]bool{"": false, "certificate": true} {
		secrets["tls"] = name
		c := containers(t, render(t, map[string]any{"secrets": secrets}))
		for _, one := range c {
			if at(one, "name") != "stet" {
				continue
			}
			args := words(at(one, "args"))
			if got := slices.Contains(args, "--tls-cert=/run/secrets/tls/tls.crt"); got != want {
				t.Errorf("secret %q: certificate: got %v, want %v", name, got, want)
			}
			if got := slices.Contains(args, "--insecure"); got == want {
				t.Errorf("secret %q: insecure: got %v", name, got)
			}
			scheme := map[bool]string{false: "HTTP", true: "HTTPS"}[want]
			if got := at(one, "readinessProbe", "httpGet", "scheme"); got != scheme {
				t.Errorf("secret %q: probe by %v, want %s", name, got, scheme)
			}
		}
	}
}

// TestMountsHaveVolumes: every mount of the chart names a volume, and the other way
// round.
func TestMountsHaveVolumes(t *testing.T) {
	for _, o := range render(t, map[string]any{"secrets": map[string]any{"environment": "e", "operator": "o", "tls": "t"}}) {
		if o["kind"] != "Deployment" {
			continue
		}
		pod := at(o, "spec", "template", "spec")
		names := func(list any) (out []string) {
			all, _ := list.([]any)
			for _, v := range all {
				out = append(out, fmt.Sprint(at(v, "name")))
			}
			slices.Sort(out)
			return out
		}
		mounts, volumes := names(at(pod, "containers", 0, "volumeMounts")), names(at(pod, "volumes"))
		if !slices.Equal(mounts, volumes) || len(mounts) != 3 {
			t.Errorf("mounts %v, volumes %v", mounts, volumes)
		}
	}
}

// TestChartDescribesItself: helm refuses a chart without these.
func TestChartDescribesItself(t *testing.T) {
	chart := documents(t, "Chart.yaml", read(t, "helm/stet/Chart.yaml"))[0]
	for key, want := range map[string]string{"apiVersion": "v2", "name": "stet", "type": "application"} {
		if chart[key] != want {
			t.Errorf("%s: got %v, want %s", key, chart[key], want)
		}
	}
	if version, _ := chart["version"].(string); strings.Count(version, ".") != 2 {
		t.Errorf("version %v is not one of three numbers", chart["version"])
	}
	if _, err := os.Stat("helm/stet/templates/NOTES.txt"); err != nil {
		t.Error(err)
	}
}
