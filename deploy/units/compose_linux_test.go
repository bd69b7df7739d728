package units_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// imageRoot is where the image is unpacked.
const imageRoot = "srv/image"

// composition is what a node of compose.yaml is started with.
type composition struct {
	Services map[string]struct {
		Environment map[string]string
		Command     []string
	}
}

// image unpacks the layers of an image and writes units that start it as an engine would,
// for compose.yaml: one service that runs, and the one for verbs. Engines are not needed
// for that: a root, a user, variables and a command are what a container has of its image.
func (f *files) image(path string) {
	f.t.Helper()
	if path == "" {
		f.t.Log("there is no image: STET_UNITS_IMAGE is not set")
		return
	}
	config := f.unpack(path)
	var c composition
	text, err := os.ReadFile("../compose.yaml")
	if err == nil {
		err = yaml.Unmarshal([]byte(strings.NewReplacer("${DB_PASSWORD:?set it in deploy/.env}", "of-the-database", "${S3_SECRET:?set it in deploy/.env}", "of-the-bucket").Replace(string(text))), &c)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	for name, verb := range map[string][]string{"node1": nil, "admin": {"doctor"}} {
		service, ok := c.Services[name]
		if !ok {
			f.t.Fatalf("compose.yaml has no service %s", name)
		}
		var unit strings.Builder
		// The root is read-only, and only its volume is not; there are no capabilities.
		fmt.Fprintf(&unit, "[Service]\nRootDirectory=/%s\nMountAPIVFS=yes\nBindReadOnlyPaths=/etc/hosts\nReadOnlyPaths=/\nReadWritePaths=/var/lib/stet\n", imageRoot)
		unit.WriteString("User=image\nGroup=image\nCapabilityBoundingSet=\nNoNewPrivileges=yes\n")
		for _, variable := range config.Env {
			fmt.Fprintf(&unit, "Environment=%q\n", variable)
		}
		for key, value := range service.Environment {
			// The database of the test is called postgres.
			fmt.Fprintf(&unit, "Environment=%q\n", key+"="+strings.Replace(value, ":5432/stet", ":5432/postgres", 1))
		}
		fmt.Fprintf(&unit, "ExecStart=%s\n", strings.Join(slices.Concat(config.Entrypoint, service.Command, verb), " "))
		if verb != nil {
			unit.WriteString("Type=oneshot\n")
		}
		f.write("etc/systemd/system/compose-"+name+".service", unit.String(), 0o644)
	}
	f.write("etc/systemd/system/image.service", fmt.Sprintf("[Service]\nType=oneshot\nRootDirectory=/%s\nMountAPIVFS=yes\nUser=image\nGroup=image\nStandardOutput=append:/out/explained\nExecStart=%s\n",
		imageRoot, strings.Join(slices.Concat(config.Entrypoint, config.Cmd), " ")), 0o644)
	f.write("etc/hosts", "127.0.0.1 localhost database bucket\n", 0o644)
	f.write("etc/try-image", "", 0o644)
	// systemd wants a name for the user of the image.
	user, group, _ := strings.Cut(config.User, ":")
	f.extend("etc/passwd", "image:x:"+user+":"+group+"::/:/bin/false\n")
	f.extend("etc/group", "image:x:"+group+":\n")
}

// extend adds a line to a file of this system.
func (f *files) extend(name, line string) {
	f.t.Helper()
	data, err := os.ReadFile("/" + name)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(name, string(data)+line, 0o644)
}

// imageConfig is the part of an image that says how to start it.
type imageConfig struct {
	User                 string
	Env, Entrypoint, Cmd []string
}

// unpack writes the files of the image for this processor.
func (f *files) unpack(path string) imageConfig {
	f.t.Helper()
	blobs := make(map[string][]byte)
	data, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	eachIn(f.t.Fatal, bytes.NewReader(data), func(header *tar.Header, content []byte) {
		blobs["sha256:"+strings.TrimPrefix(header.Name, "blobs/sha256/")] = content
	})
	type descriptor struct {
		Digest   string
		Platform struct{ Architecture string }
	}
	get := func(digest string, into any) {
		if err := json.Unmarshal(blobs[digest], into); err != nil {
			f.t.Fatalf("%s: %v", digest, err)
		}
	}
	var top, all struct{ Manifests []descriptor }
	if err := json.Unmarshal(blobs["sha256:index.json"], &top); err != nil {
		f.t.Fatal(err)
	}
	get(top.Manifests[0].Digest, &all)
	mine := slices.IndexFunc(all.Manifests, func(d descriptor) bool { return d.Platform.Architecture == runtime.GOARCH })
	if mine < 0 {
		f.t.Fatalf("the image has nothing for %s", runtime.GOARCH)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	get(all.Manifests[mine].Digest, &manifest)
	for _, layer := range manifest.Layers {
		eachIn(f.t.Fatal, gunzip(f.t, blobs[layer.Digest]), func(header *tar.Header, content []byte) {
			name := filepath.Join(f.dir, "files", imageRoot, header.Name)
			var err error
			if header.Typeflag == tar.TypeDir {
				err = os.MkdirAll(name, 0o755)
			} else {
				err = os.WriteFile(name, content, 0o644)
			}
			if err = errors.Join(err, os.Chmod(name, fs.FileMode(header.Mode)), os.Chown(name, header.Uid, header.Gid)); err != nil {
				f.t.Fatal(err)
			}
		})
	}
	var config struct{ Config imageConfig }
	get(manifest.Config.Digest, &config)
	return config.Config
}

func gunzip(t *testing.T, data []byte) io.Reader {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func eachIn(fatal func(...any), from io.Reader, do func(*tar.Header, []byte)) {
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			fatal(err)
		}
		do(header, content)
	}
}
