package main

import (
	"context"
	_ "embed"
	"encoding/json"
)

// launcher starts the program of the package for this system.
//
//go:embed launcher.js
var launcher []byte

// Names that npm has for systems and processors.
var (
	nodeSystems    = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32", "freebsd": "freebsd"}
	nodeProcessors = map[string]string{"amd64": "x64", "arm64": "arm64"}
)

const npmScope = "@stet-dev/stet-"

// npm makes a package for each target and one that depends on whichever fits, so that
// `npx stet` downloads one program.
func (r *release) npm(context.Context) error {
	optional := make(map[string]string)
	for _, t := range r.targets {
		system, arch := nodeSystems[t.os], nodeProcessors[t.arch]
		name := npmScope + system + "-" + arch
		optional[name] = r.number()
		files, err := r.programFiles(t, "package/bin/")
		if err != nil {
			return err
		}
		about := map[string]any{
			"name": name, "version": r.number(), "description": "The program of the package stet for " + t.os + "/" + t.arch,
			"license": licence, "homepage": homepage, "os": []string{system}, "cpu": []string{arch}, "preferUnplugged": true,
		}
		if err := r.npmPackage("stet-"+system+"-"+arch, about, files); err != nil {
			return err
		}
	}
	about := map[string]any{
		"name": "stet", "version": r.number(), "description": summary, "license": licence, "homepage": homepage,
		"keywords": []string{"agents", "checkpoints", "undo", "durable"}, "bin": map[string]string{"stet": "bin/stet.js"},
		"engines": map[string]string{"node": ">=18"}, "optionalDependencies": optional,
		"repository": map[string]string{"type": "git", "url": "git+" + homepage + ".git"},
	}
	return r.npmPackage("stet", about, []file{{name: "package/bin/stet.js", data: launcher, mode: 0o755}})
}

func (r *release) npmPackage(name string, about map[string]any, files []file) error {
	description, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	all := []file{{name: "package/package.json", data: append(description, '\n'), mode: 0o644}}
	for _, f := range r.shared {
		if f.name == "LICENSE" || f.name == "README.md" {
			f.name = "package/" + f.name
			all = append(all, f)
		}
	}
	data, err := compressedTarball(append(all, files...), r.when)
	if err != nil {
		return err
	}
	return r.write("npm-"+name+"-"+r.number()+".tgz", data)
}
