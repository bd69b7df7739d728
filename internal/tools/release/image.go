package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
)

// Media types of the parts of an image.
const (
	ociIndex    = "application/vnd.oci.image.index.v1+json"
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	ociConfig   = "application/vnd.oci.image.config.v1+json"
	ociLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// nobody is the user in the image.
const nobody = 65532

// layout is a directory of the OCI image format.
type layout struct{ files []file }

// descriptor names a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (l *layout) add(kind string, data []byte) descriptor {
	sum := digest(data)
	l.files = append(l.files, file{name: "blobs/sha256/" + sum, data: data, mode: 0o644})
	return descriptor{MediaType: kind, Digest: "sha256:" + sum, Size: len(data)}
}

func (l *layout) addJSON(kind string, value any) (descriptor, error) {
	data, err := json.Marshal(value)
	return l.add(kind, data), err
}

// image makes an image for every kind of Linux, as an archive that `docker load`, `podman
// load` and `crane push` take. It is what deploy/Dockerfile builds.
func (r *release) image(context.Context) error {
	if len(r.targetsOf("linux")) == 0 {
		return nil
	}
	var l layout
	var manifests []descriptor
	for _, t := range r.targetsOf("linux") {
		m, err := r.imageOf(&l, t)
		if err != nil {
			return err
		}
		m.Platform = map[string]string{"os": t.os, "architecture": t.arch}
		manifests = append(manifests, m)
	}
	all, err := l.addJSON(ociIndex, map[string]any{"schemaVersion": 2, "mediaType": ociIndex, "manifests": manifests})
	if err != nil {
		return err
	}
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.number(), "io.containerd.image.name": "ghcr.io/stet-dev/stet:" + r.number()}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []descriptor{all}})
	if err != nil {
		return err
	}
	files := append([]file{
		{name: "oci-layout", data: []byte(`{"imageLayoutVersion":"1.0.0"}`), mode: 0o644},
		{name: "index.json", data: index, mode: 0o644},
		{name: "blobs/", mode: 0o755, dir: true},
		{name: "blobs/sha256/", mode: 0o755, dir: true},
	}, l.files...)
	data, err := tarball(files, r.when)
	if err != nil {
		return err
	}
	return r.write("stet_"+r.number()+"_image.tar", data)
}

// imageOf adds the image of a target.
func (r *release) imageOf(l *layout, t target) (descriptor, error) {
	trusted, err := os.ReadFile(r.certificates)
	if err != nil {
		return descriptor{}, err
	}
	inside := []file{
		{name: "etc/", mode: 0o755, dir: true}, {name: "etc/ssl/", mode: 0o755, dir: true}, {name: "etc/ssl/certs/", mode: 0o755, dir: true},
		{name: "etc/ssl/certs/ca-certificates.crt", data: trusted, mode: 0o644},
		{name: "usr/", mode: 0o755, dir: true}, {name: "usr/bin/", mode: 0o755, dir: true},
		{name: "var/", mode: 0o755, dir: true}, {name: "var/lib/", mode: 0o755, dir: true},
		{name: "var/lib/stet/", mode: 0o700, dir: true, uid: nobody},
	}
	program, err := os.ReadFile(r.program(t, "stet"))
	if err != nil {
		return descriptor{}, err
	}
	plain, err := tarball(append(inside, file{name: "usr/bin/stet", data: program, mode: 0o755}), r.when)
	if err != nil {
		return descriptor{}, err
	}
	packed, err := compress(plain)
	if err != nil {
		return descriptor{}, err
	}
	layer := l.add(ociLayer, packed)
	config, err := l.addJSON(ociConfig, map[string]any{
		"architecture": t.arch, "os": t.os, "created": r.date,
		"config": map[string]any{
			"User": "65532:65532", "ExposedPorts": map[string]any{"7717/tcp": struct{}{}}, "Volumes": map[string]any{"/var/lib/stet": struct{}{}},
			"Env":        []string{"PATH=/usr/bin", "XDG_CONFIG_HOME=/etc", "XDG_DATA_HOME=/var/lib", "XDG_STATE_HOME=/var/lib"},
			"Entrypoint": []string{"/usr/bin/stet"}, "Cmd": []string{"serve", "--explain"}, "StopSignal": "SIGTERM",
			"Labels": map[string]string{
				"org.opencontainers.image.source": homepage, "org.opencontainers.image.version": r.number(),
				"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.licenses": licence,
			},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(plain)}},
		"history": []map[string]any{{"created": r.date, "created_by": "stet release"}},
	})
	if err != nil {
		return descriptor{}, err
	}
	return l.addJSON(ociManifest, map[string]any{"schemaVersion": 2, "mediaType": ociManifest, "config": config, "layers": []descriptor{layer}})
}
