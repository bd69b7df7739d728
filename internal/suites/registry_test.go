package suites

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// registry serves packages to npm on this machine: those that setup installed below
// clients/, and those that a test packed.
type registry struct {
	address string
	// packed has the tarballs of packages by name.
	packed map[string]string
}

// ServeHTTP answers what npm asks: /NAME describes a package, /-/DIRECTORY is its tarball.
func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path := strings.TrimPrefix(req.URL.Path, "/")
	if dir, ok := strings.CutPrefix(path, "-/"); ok {
		r.tarball(w, dir)
		return
	}
	versions := map[string]any{}
	latest := ""
	for _, dir := range r.installed(path) {
		data, err := os.ReadFile(filepath.Join(dir, "package.json"))
		var p map[string]any
		if err != nil || json.Unmarshal(data, &p) != nil || p["name"] != path || p["os"] != nil {
			continue // programs for one system are large, and optional
		}
		latest, _ = p["version"].(string)
		p["dist"] = map[string]string{"tarball": r.address + "/-/" + url.PathEscape(dir)}
		versions[latest] = p
	}
	if len(versions) == 0 {
		http.NotFound(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"name": path, "versions": versions, "dist-tags": map[string]string{"latest": latest}})
}

// installed returns the directories of a package. Ours are those of their sources.
func (r *registry) installed(name string) []string {
	if own, ok := strings.CutPrefix(name, "@stet-dev/"); ok {
		if own == "client" {
			own = "typescript"
		}
		return []string{filepath.Join("../../clients", own)}
	}
	var all []string
	for _, pattern := range []string{"", "*/node_modules", "@*/*/node_modules"} {
		found, err := filepath.Glob(filepath.Join("../../clients/*/node_modules", pattern, name))
		if err == nil {
			all = append(all, found...)
		}
	}
	return all
}

func (r *registry) tarball(w http.ResponseWriter, dir string) {
	for name, file := range r.packed {
		if r.installed(name)[0] == dir {
			data, err := os.ReadFile(file)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_, _ = w.Write(data) // npm reports what is missing
			return
		}
	}
	zipped, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err == nil {
		out := tar.NewWriter(zipped)
		if err = packDir(out, dir); err == nil {
			err = out.Close()
		}
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = zipped.Close()
}

// packDir writes an installed package without the packages in it.
func packDir(out *tar.Writer, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "node_modules" && path != dir {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		header := &tar.Header{Name: "package/" + filepath.ToSlash(name), Mode: 0o644, Size: info.Size(), ModTime: info.ModTime()}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return err
	})
}
