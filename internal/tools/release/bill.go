package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"runtime/debug"
	"strings"
)

func infoOf(path string) (*debug.BuildInfo, error) { return buildinfo.ReadFile(path) }

// bill lists the modules inside of the programs, as SPDX 2.3. The linker wrote them into
// each program, so that the list is what was linked.
func (r *release) bill(context.Context) error {
	for _, t := range r.targets {
		info, err := r.info(r.program(t, "stet"))
		if err != nil {
			return err
		}
		name := "stet_" + r.number() + "_" + t.os + "_" + t.arch
		packages := []map[string]any{spdx("stet", "github.com/stet-dev/stet", r.version, licence), spdx("go", "stdlib", strings.Replace(info.GoVersion, "go", "v", 1), "BSD-3-Clause")}
		relations := []map[string]string{
			{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-stet"},
			{"spdxElementId": "SPDXRef-stet", "relationshipType": "STATIC_LINK", "relatedSpdxElement": "SPDXRef-go"},
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			id := strings.Map(spdxID, m.Path)
			packages = append(packages, spdx(id, m.Path, m.Version, "NOASSERTION"))
			relations = append(relations, map[string]string{"spdxElementId": "SPDXRef-stet", "relationshipType": "STATIC_LINK", "relatedSpdxElement": "SPDXRef-" + id})
		}
		data, err := json.MarshalIndent(map[string]any{
			"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
			"documentNamespace": homepage + "/releases/download/" + r.version + "/" + name + ".spdx.json",
			"creationInfo":      map[string]any{"created": r.date, "creators": []string{"Tool: stet-release-" + r.number()}},
			"packages":          packages, "relationships": relations,
		}, "", "  ")
		if err != nil {
			return err
		}
		if err := r.write(name+".spdx.json", append(data, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// spdxID keeps what ids may have.
func spdxID(c rune) rune {
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' {
		return c
	}
	return '-'
}

func spdx(id, name, version, licence string) map[string]any {
	return map[string]any{
		"SPDXID": "SPDXRef-" + id, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
		"licenseConcluded": "NOASSERTION", "licenseDeclared": licence, "copyrightText": "NOASSERTION",
		"externalRefs": []map[string]string{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:golang/" + name + "@" + version}},
	}
}
