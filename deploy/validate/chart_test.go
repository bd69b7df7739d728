// Package validate_test holds the deployment files to the programs that read them: helm's
// own code renders the chart, the types of Kubernetes decode what it gives, and the code
// of docker compose loads the compose file. `make test-deploy` runs it; deploy_test.go
// beside it checks in seconds, without these, what the files say about stet.
package validate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// load reads the chart as helm does, which includes what it demands of Chart.yaml.
func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load("../helm/stet")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// render is `helm template stet deploy/helm/stet --set …`.
func render(t *testing.T, set map[string]any) (map[string]string, error) {
	t.Helper()
	c := load(t)
	values, err := chartutil.ToRenderValues(c, set, chartutil.ReleaseOptions{Name: "stet", Namespace: "agents", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(c, values)
}

// objects are the manifests, decoded. A field that Kubernetes does not know, or one of
// another type, is an error, as it is with `kubectl apply --validate=strict`.
type objects struct {
	deployments []appsv1.Deployment
	services    []corev1.Service
	budgets     []policyv1.PodDisruptionBudget
	jobs        []batchv1.CronJob
}

func (o *objects) add(name, text string) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, text)
	}
	var err error
	switch kind.APIVersion + " " + kind.Kind {
	case "apps/v1 Deployment":
		o.deployments, err = decoded(o.deployments, text)
	case "v1 Service":
		o.services, err = decoded(o.services, text)
	case "policy/v1 PodDisruptionBudget":
		o.budgets, err = decoded(o.budgets, text)
	case "batch/v1 CronJob":
		o.jobs, err = decoded(o.jobs, text)
	default:
		err = fmt.Errorf("it is a %q", kind)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, text)
	}
	return nil
}

func decoded[T any](all []T, text string) ([]T, error) {
	var one T
	err := yaml.UnmarshalStrict([]byte(text), &one)
	return append(all, one), err
}

func manifests(t *testing.T, set map[string]any) objects {
	t.Helper()
	files, err := render(t, set)
	if err != nil {
		t.Fatal(err)
	}
	var o objects
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for document := range strings.SplitSeq("\n"+text, "\n---") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			if err := o.add(name, document); err != nil {
				t.Fatal(err)
			}
		}
	}
	return o
}

// settings are values that people choose, each with the number of objects that it gives:
// deployments, services, budgets, jobs.
var settings = map[string]struct {
	set  map[string]any
	want [4]int
}{
	"the chart's own": {nil, [4]int{1, 1, 1, 1}},
	"certificate":     {map[string]any{"secrets": map[string]any{"tls": "certificate"}}, [4]int{1, 1, 1, 1}},
	"no bucket":       {map[string]any{"blobs": ""}, [4]int{1, 1, 1, 1}},
	"one node":        {map[string]any{"replicas": 1, "house": map[string]any{"enabled": false}}, [4]int{1, 1, 0, 0}},
	"tenants":         {map[string]any{"house": map[string]any{"tenants": []any{"shop", "my_shop", "my-shop", "42", "ends-", strings.Repeat("long", 15) + "one", strings.Repeat("long", 15) + "two"}}}, [4]int{1, 1, 1, 7}},
	"placed": {map[string]any{
		"nodeSelector": map[string]any{"disk": "fast"}, "serviceAccountName": "stet", "podAnnotations": map[string]any{"a": "b"},
		"tolerations": []any{map[string]any{"key": "agents", "operator": "Exists"}},
		"audit":       map[string]any{"volume": map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "audit"}}},
	}, [4]int{1, 1, 1, 1}},
}

func TestChartGivesWhatKubernetesTakes(t *testing.T) {
	for name, s := range settings {
		t.Run(name, func(t *testing.T) {
			o := manifests(t, s.set)
			if got := [4]int{len(o.deployments), len(o.services), len(o.budgets), len(o.jobs)}; got != s.want {
				t.Errorf("it gives %v objects, want %v", got, s.want)
			}
			o.check(t)
		})
	}
}

// check looks at what an API server refuses, or takes and leaves without effect.
func (o *objects) check(t *testing.T) {
	t.Helper()
	seen := make(map[string]bool)
	named := func(kind string, meta metav1.ObjectMeta) {
		if errs := validation.IsDNS1123Subdomain(meta.Name); errs != nil {
			t.Errorf("%s %q: %v", kind, meta.Name, errs)
		}
		if kind == "CronJob" && len(meta.Name) > 52 {
			t.Errorf("the name %q is too long for a CronJob", meta.Name)
		}
		if seen[kind+meta.Name] {
			t.Errorf("there are two of %s %q", kind, meta.Name)
		}
		seen[kind+meta.Name] = true
		for key, value := range meta.Labels {
			if errs := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)); errs != nil {
				t.Errorf("%s %q: label %s=%s: %v", kind, meta.Name, key, value, errs)
			}
		}
	}
	for _, d := range o.deployments {
		named("Deployment", d.ObjectMeta)
		template := labels.Set(d.Spec.Template.Labels)
		selects(t, "Deployment", d.Spec.Selector, template)
		checkPod(t, d.Spec.Template.Spec)
		for _, b := range o.budgets {
			named("PodDisruptionBudget", b.ObjectMeta)
			selects(t, "PodDisruptionBudget", b.Spec.Selector, template)
		}
		for _, s := range o.services {
			named("Service", s.ObjectMeta)
			if !labels.SelectorFromSet(s.Spec.Selector).Matches(template) {
				t.Errorf("service %q selects %v, but pods have %v", s.Name, s.Spec.Selector, template)
			}
			for _, port := range s.Spec.Ports {
				if !slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == port.TargetPort.StrVal }) {
					t.Errorf("service %q leads to the port %s, which no container has", s.Name, port.TargetPort.String())
				}
			}
		}
	}
	for _, j := range o.jobs {
		named("CronJob", j.ObjectMeta)
		if n := len(strings.Fields(j.Spec.Schedule)); n != 5 {
			t.Errorf("the schedule %q has %d fields", j.Spec.Schedule, n)
		}
		pod := j.Spec.JobTemplate.Spec.Template.Spec
		if pod.RestartPolicy != corev1.RestartPolicyNever && pod.RestartPolicy != corev1.RestartPolicyOnFailure {
			t.Errorf("a job restarts %q", pod.RestartPolicy)
		}
		checkPod(t, pod)
	}
}

func selects(t *testing.T, kind string, selector *metav1.LabelSelector, pods labels.Set) {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || s.Empty() || !s.Matches(pods) {
		t.Errorf("%s selects %v, but pods have %v: %v", kind, selector, pods, err)
	}
}

// checkPod holds a pod to the restricted standard of Kubernetes, and its mounts and
// variables to each other.
func checkPod(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	volumes := make(map[string]bool)
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		var sources map[string]any
		text, err := yaml.Marshal(v.VolumeSource)
		if err == nil {
			err = yaml.Unmarshal(text, &sources)
		}
		if err != nil || len(sources) != 1 {
			t.Errorf("volume %s has %d sources: %s, %v", v.Name, len(sources), text, err)
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("container %s mounts %s, which is not there", c.Name, m.Name)
			}
		}
		names := make(map[string]bool)
		for _, e := range c.Env {
			if names[e.Name] {
				t.Errorf("container %s has the variable %s twice", c.Name, e.Name)
			}
			names[e.Name] = true
		}
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.RunAsNonRoot == nil || !*s.RunAsNonRoot ||
			s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("container %s is not restricted: %+v", c.Name, s)
		}
		for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
			if p != nil && !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == p.HTTPGet.Port.StrVal }) {
				t.Errorf("container %s is probed at the port %s, which it does not have", c.Name, p.HTTPGet.Port.String())
			}
		}
	}
}

// TestWhatTheChartRefuses: values that would give a node that cannot work.
func TestWhatTheChartRefuses(t *testing.T) {
	for want, set := range map[string]map[string]any{
		"the address of the database is needed": {"store": ""},
		"replicas":                              {"replicas": "three"},
		"secrets":                               {"secrets": "stet"},
		"tenants":                               {"house": map[string]any{"tenants": "default"}},
		"replica":                               {"replica": 5}, // misspelt
	} {
		if files, err := render(t, set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, %d files", set, err, len(files))
		}
	}
}

// TestMistakesAreFound: a check that finds nothing would pass, too.
func TestMistakesAreFound(t *testing.T) {
	for _, text := range []string{
		"apiVersion: apps/v1\nkind: Deployment\nspec: {replica: 3}",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: three}",
		"apiVersion: v1\nkind: Service\nspec: {ports: {name: stet}}",
		"apiVersion: v1\nkind: Service\nspec: {type: A}\nspec: {type: B}",
		"apiVersion: apps/v1\nkind: StatefulSet",
		"apiVersion: batch/v1beta1\nkind: CronJob",
	} {
		var o objects
		if err := o.add("it", text); err == nil {
			t.Errorf("nothing was found in %s", text)
		}
	}
}
