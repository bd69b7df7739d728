package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// wheelTags are the names that Python has for targets. Programs that are linked statically
// run with every C library.
var wheelTags = map[target][]string{
	{"linux", "amd64"}:   {"manylinux2014_x86_64", "manylinux_2_17_x86_64", "musllinux_1_1_x86_64"},
	{"linux", "arm64"}:   {"manylinux2014_aarch64", "manylinux_2_17_aarch64", "musllinux_1_1_aarch64"},
	{"darwin", "amd64"}:  {"macosx_11_0_x86_64"},
	{"darwin", "arm64"}:  {"macosx_11_0_arm64"},
	{"windows", "amd64"}: {"win_amd64"},
	{"windows", "arm64"}: {"win_arm64"},
}

// wheels makes a wheel for each target that Python has a name for; it has the programs as
// scripts.
func (r *release) wheels(context.Context) error {
	version, suffix, _ := strings.Cut(r.number(), "-")
	version += strings.ReplaceAll(suffix, ".", "") // Python writes 1.0.0-rc.1 as 1.0.0rc1
	for _, t := range r.targets {
		tags := wheelTags[t]
		if len(tags) == 0 {
			continue
		}
		files, err := r.programFiles(t, "stet-"+version+".data/scripts/")
		if err != nil {
			return err
		}
		info := "stet-" + version + ".dist-info/"
		wheel := "Wheel-Version: 1.0\nGenerator: stet\nRoot-Is-Purelib: false\n"
		for _, tag := range tags {
			wheel += "Tag: py3-none-" + tag + "\n"
		}
		metadata := fmt.Sprintf("Metadata-Version: 2.4\nName: stet\nVersion: %s\nSummary: %s\nHome-page: %s\nLicense-Expression: %s\nLicense-File: LICENSE\nDescription-Content-Type: text/markdown\n\n",
			version, summary, homepage, licence)
		for _, f := range r.shared {
			switch f.name {
			case "README.md":
				metadata += string(f.data)
			case "LICENSE":
				f.name = info + "licenses/LICENSE"
				files = append(files, f)
			}
		}
		files = append(files,
			file{name: info + "METADATA", data: []byte(metadata), mode: 0o644},
			file{name: info + "WHEEL", data: []byte(wheel), mode: 0o644})
		record := ""
		for _, f := range files {
			sum := sha256.Sum256(f.data)
			record += fmt.Sprintf("%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
		}
		files = append(files, file{name: info + "RECORD", data: []byte(record + info + "RECORD,,\n"), mode: 0o644})
		data, err := zipped(files, r.when)
		if err != nil {
			return err
		}
		if err := r.write("stet-"+version+"-py3-none-"+strings.Join(tags, ".")+".whl", data); err != nil {
			return err
		}
	}
	return nil
}
