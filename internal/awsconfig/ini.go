package awsconfig

import "strings"

// section is a part of a shared file: its keys are lower-case. A value that is a block of
// indented lines is under "key.inner".
type section map[string]string

// parseINI reads a shared file as the tools of AWS do. Lines that mean nothing to them are
// left out; a section that appears twice is one.
func parseINI(text string) map[string]section {
	sections := make(map[string]section)
	var current section
	block := "" // the key without a value whose block may follow
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimRight(line, " \t\r\n")
		trimmed := strings.TrimLeft(line, " \t")
		indented := len(trimmed) < len(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
			continue
		case trimmed[0] == '[' && !indented:
			name := sectionName(trimmed)
			if sections[name] == nil {
				sections[name] = make(section)
			}
			current, block = sections[name], ""
			continue
		case current == nil:
			continue
		}
		key, value, ok := property(trimmed)
		switch {
		case !ok:
		case indented && block != "":
			current[block+"."+key] = value
		default:
			current[key] = value
			block = ""
			if value == "" {
				block = key
			}
		}
	}
	return sections
}

// sectionName returns what is between brackets, with single spaces.
func sectionName(line string) string {
	name, _, _ := strings.Cut(line[1:], "]")
	return strings.Join(strings.Fields(name), " ")
}

// property splits a line at its first equals sign or, as old files have it, colon.
func property(line string) (key, value string, ok bool) {
	i := strings.IndexAny(line, "=:")
	if i <= 0 {
		return "", "", false
	}
	value = line[i+1:]
	for _, comment := range []string{" #", " ;", "\t#", "\t;"} {
		value, _, _ = strings.Cut(value, comment)
	}
	value = strings.TrimSpace(value)
	if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	return strings.ToLower(strings.TrimSpace(line[:i])), value, true
}
