package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Texts that all packages have.
const (
	summary  = "Keeps what AI agents did, every conversation and every file, and lets you take any of it back"
	homepage = "https://github.com/stet-dev/stet"
	licence  = "Apache-2.0"
)

// packages makes deb, rpm and apk with nfpm.
func (r *release) packages(ctx context.Context) error {
	if r.nfpm == "" {
		return nil
	}
	shared := filepath.Join(r.work, "shared")
	contents, err := r.installed(shared)
	if err != nil {
		return err
	}
	for _, t := range r.targetsOf("linux") {
		all := slices.Clone(contents)
		for _, name := range programs {
			all = append(all, content(r.program(t, name), "/usr/bin/"+name, 0o755, r.date))
		}
		// JSON is YAML, too.
		config, err := json.Marshal(map[string]any{
			"name": "stet", "arch": t.arch, "platform": "linux", "version": r.version, "version_schema": "semver", "maintainer": "stet <stet-dev@users.noreply.github.com>",
			"description": summary, "homepage": homepage, "license": licence, "vendor": "stet", "section": "vcs", "priority": "optional",
			"mtime": r.date, "contents": all, "rpm": map[string]any{"buildhost": "stet", "group": "Development/Tools"},
		})
		if err != nil {
			return err
		}
		path := filepath.Join(r.work, "nfpm-"+t.arch+".yaml")
		if err := os.WriteFile(path, config, 0o644); err != nil {
			return err
		}
		for _, kind := range []string{"deb", "rpm", "apk"} {
			to := filepath.Join(r.out, "stet_"+r.number()+"_"+t.arch+"."+kind)
			cmd := exec.CommandContext(ctx, r.nfpm, "package", "--config", path, "--packager", kind, "--target", to)
			cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.when.Unix(), 10))
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("nfpm %s: %w\n%s", kind, err, out)
			}
		}
	}
	return nil
}

// installed writes what packages install besides programs, and returns it as contents.
func (r *release) installed(dir string) ([]map[string]any, error) {
	var out []map[string]any
	for _, f := range r.shared {
		to := "/usr/share/doc/stet/" + f.name
		switch base := filepath.Base(f.name); {
		case strings.HasPrefix(f.name, "man/"):
			data, err := compress(f.data)
			if err != nil {
				return nil, err
			}
			f.data, f.name, to = data, f.name+".gz", "/usr/share/man/man1/"+base+".gz"
		case base == "stet.bash":
			to = "/usr/share/bash-completion/completions/stet"
		case base == "_stet":
			to = "/usr/share/zsh/site-functions/_stet"
		case base == "stet.fish":
			to = "/usr/share/fish/vendor_completions.d/stet.fish"
		case base == "stet.ps1":
			continue
		}
		path := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, f.data, 0o644); err != nil {
			return nil, err
		}
		out = append(out, content(path, to, 0o644, r.date))
	}
	return out, nil
}

func content(from, to string, mode int, date string) map[string]any {
	return map[string]any{"src": from, "dst": to, "file_info": map[string]any{"mode": mode, "mtime": date, "owner": "root", "group": "root"}}
}
