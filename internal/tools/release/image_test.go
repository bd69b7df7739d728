package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestImageIsThatOfTheDockerfile: both say the same about the user, the variables, the
// volume, the port and the command.
func TestImageIsThatOfTheDockerfile(t *testing.T) {
	image := untar(t, made(t, fake(t))["stet_0.1.0_image.tar"])
	var config struct {
		Config struct {
			User, StopSignal      string
			Env, Entrypoint, Cmd  []string
			Volumes, ExposedPorts map[string]any
		}
	}
	for _, data := range image {
		if strings.Contains(data, `"Entrypoint"`) {
			if err := json.Unmarshal([]byte(data), &config); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := config.Config
	quoted := func(words []string) string {
		text, _ := json.Marshal(words)
		return strings.ReplaceAll(string(text), ",", ", ")
	}
	want := map[string]string{
		"USER": c.User, "STOPSIGNAL": c.StopSignal, "ENV": strings.Join(c.Env[1:], " "), // the first is PATH, which engines add
		"ENTRYPOINT": quoted(c.Entrypoint), "CMD": quoted(c.Cmd),
	}
	for v := range c.Volumes {
		want["VOLUME"] = v
	}
	for p := range c.ExposedPorts {
		want["EXPOSE"] = strings.TrimSuffix(p, "/tcp")
	}
	_, last, _ := strings.Cut(readText(t, "deploy/Dockerfile"), "FROM scratch\n")
	for line := range strings.Lines(last) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if value, ok := want[name]; ok && value != rest {
			t.Errorf("%s is %q in the image and %q in the Dockerfile", name, value, rest)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("the Dockerfile does not say %v", want)
	}
}

// TestImageIsWhole follows the digests from the index to the programs.
func TestImageIsWhole(t *testing.T) {
	image := untar(t, made(t, fake(t))["stet_0.1.0_image.tar"])
	type list struct{ Manifests []descriptor }
	blob := func(d descriptor, into any) string {
		data := image["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if "sha256:"+digest([]byte(data)) != d.Digest || len(data) != d.Size {
			t.Fatalf("%s is not what its digest says", d.Digest)
		}
		if into != nil {
			if err := json.Unmarshal([]byte(data), into); err != nil {
				t.Fatal(err)
			}
		}
		return data
	}
	var top, all list
	if err := json.Unmarshal([]byte(image["index.json"]), &top); err != nil || len(top.Manifests) != 1 {
		t.Fatal(err, image["index.json"])
	}
	blob(top.Manifests[0], &all)
	if len(all.Manifests) != 2 {
		t.Fatalf("the image is for %d targets", len(all.Manifests))
	}
	for _, m := range all.Manifests {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		var config struct {
			Architecture string
			Rootfs       struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		blob(m, &manifest)
		blob(manifest.Config, &config)
		layer := gunzip(t, blob(manifest.Layers[0], nil))
		if config.Rootfs.DiffIDs[0] != "sha256:"+digest([]byte(layer)) || config.Architecture != m.Platform["architecture"] {
			t.Errorf("the configuration is %+v", config)
		}
		if program := untar(t, layer)["usr/bin/stet"]; !strings.Contains(program, "stet for linux/"+config.Architecture) {
			t.Errorf("the program is %q", program)
		}
	}
}

// TestAnImageAlone is what make image makes.
func TestAnImageAlone(t *testing.T) {
	r := fake(t)
	r.only = "image"
	if files := made(t, r); len(files) != 1 || files["stet_0.1.0_image.tar"] == "" {
		t.Errorf("made %d files", len(files))
	}
}
