package postgres

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/stet-dev/stet/kv"
)

const (
	// maxPayload is the size limit of a notification; the server's limit is 8,000.
	maxPayload = 7800
	// maxHintKey is how much of a key is sent: watchers watch prefixes.
	maxHintKey = 96
	// maxHints is how many keys of a tenant are listed.
	maxHints = 64
)

// touched describes the changes in a tenant's rows: keys that begin with one of the
// prefixes, or any.
type touched struct {
	prefixes map[string]struct{}
	any      bool
}

func newTouched() *touched { return &touched{prefixes: make(map[string]struct{})} }

func (t *touched) add(b *kv.Batch) {
	for _, s := range b.Set {
		t.addKey(s.Key)
	}
	for _, key := range b.Delete {
		t.addKey(key)
	}
	for _, r := range b.DeleteRange {
		t.addKey(commonPrefix(r))
	}
}

func (t *touched) addKey(key string) {
	if t.any {
		return
	}
	if key == "" || len(t.prefixes) == maxHints {
		t.any, t.prefixes = true, nil
		return
	}
	t.prefixes[key[:min(len(key), maxHintKey)]] = struct{}{}
}

// commonPrefix returns the common prefix of all keys of a range.
func commonPrefix(r kv.Range) string {
	if r.End == "" {
		return ""
	}
	n := 0
	for n < len(r.Start) && n < len(r.End) && r.Start[n] == r.End[n] {
		n++
	}
	return r.Start[:n]
}

// hint is the part of a notification about one tenant.
type hint struct {
	tenant   string
	prefixes []string // empty: any key
}

// concerns reports whether a row of the range may have changed.
func (h hint) concerns(in kv.Range) bool {
	if len(h.prefixes) == 0 {
		return true
	}
	for _, p := range h.prefixes {
		if strings.HasPrefix(in.Start, p) || in.Start <= p && (in.End == "" || p < in.End) {
			return true
		}
	}
	return false
}

// encodeHints writes notifications: the node, then for each tenant a line with its name
// and prefixes, each escaped as in a URL query and followed by a space. If that is too
// long, it becomes "*": anything may have changed.
func encodeHints(node string, all map[string]*touched) []string {
	const maxPayloads = 8
	var payloads []string
	text := node
	for _, tenant := range slices.Sorted(maps.Keys(all)) {
		line := hintLine(tenant, all[tenant])
		if len(text)+len(line) > maxPayload {
			payloads = append(payloads, text)
			text = node
		}
		text += line
	}
	if text != node {
		payloads = append(payloads, text)
	}
	if len(payloads) > maxPayloads {
		return []string{node + "\n*"}
	}
	return payloads
}

func hintLine(tenant string, t *touched) string {
	line := "\n" + url.QueryEscape(tenant)
	for _, p := range slices.Sorted(maps.Keys(t.prefixes)) {
		line += " " + url.QueryEscape(p)
		if len(line) > maxPayload/4 {
			return "\n" + url.QueryEscape(tenant) // any of its keys
		}
	}
	return line
}

// decodeHints is the inverse of encodeHints. If ok is false, anything may have
// changed.
func decodeHints(payload string) (node string, hints []hint, ok bool) {
	lines := strings.Split(payload, "\n")
	for _, line := range lines[1:] {
		fields := strings.Split(line, " ")
		for i, f := range fields {
			text, err := url.QueryUnescape(f)
			if err != nil || f == "*" {
				return lines[0], nil, false
			}
			fields[i] = text
		}
		hints = append(hints, hint{tenant: fields[0], prefixes: fields[1:]})
	}
	return lines[0], hints, true
}
