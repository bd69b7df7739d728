package codex

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/stet-dev/stet/foreign"
)

const configFile = "config.toml"

// state is what Codex keeps about a hook in its settings.
type state struct {
	Trusted string `toml:"trusted_hash"`
	Enabled *bool  `toml:"enabled"`
}

// group is an element of a list of hooks.json.
type group struct {
	Matcher *string `json:"matcher"`
	Hooks   []struct {
		Type    string  `json:"type"`
		Command string  `json:"command"`
		Timeout *int64  `json:"timeout"`
		Async   bool    `json:"async"`
		Message *string `json:"statusMessage"`
	} `json:"hooks"`
}

// Skips reports the hooks that Codex skips because its user did not approve their
// current form, or switched them off. Codex records approvals in its settings, each
// hook by its place in hooks.json and by a hash of what it runs.
func (Adapter) Skips(h foreign.Host, c foreign.Connect) (string, error) {
	path := hooksPath(h, c)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var file struct{ Hooks map[string][]group }
	if err := json.Unmarshal(data, &file); err != nil {
		return "", fmt.Errorf("%w: %s: %w", foreign.ErrSettings, path, err)
	}
	states, err := approvals(filepath.Join(home(h), configFile))
	if err != nil {
		return "", err
	}
	names := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		names = append(names, real)
	}
	all, asked, off := 0, 0, 0
	for event, groups := range file.Hooks {
		for i, g := range groups {
			for j, hook := range g.Hooks {
				if !strings.Contains(hook.Command, c.Ours(event)) {
					continue
				}
				all++
				var known state
				for _, name := range names {
					if s, ok := states[fmt.Sprintf("%s:%s:%d:%d", name, label(event), i, j)]; ok {
						known = s
					}
				}
				switch {
				case known.Trusted != g.hash(event, j):
					asked++
				case known.Enabled != nil && !*known.Enabled:
					off++
				}
			}
		}
	}
	switch {
	case asked > 0:
		return fmt.Sprintf("codex skips %d of %d hooks until you approve them: start codex and choose \"Trust all and continue\", or /hooks", asked, all), nil
	case off > 0:
		return fmt.Sprintf("%d of %d hooks are switched off in codex: /hooks switches them on", off, all), nil
	}
	return "", nil
}

// approvals returns what Codex has recorded about hooks.
func approvals(path string) (map[string]state, error) {
	var settings struct {
		Hooks struct {
			State map[string]state `toml:"state"`
		} `toml:"hooks"`
	}
	_, err := toml.DecodeFile(path, &settings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", foreign.ErrSettings, path, err)
	}
	return settings.Hooks.State, nil
}

// hash returns the value that Codex compares with the approved hash: the hash of the
// event, the matcher and the hook, as JSON with sorted keys.
func (g group) hash(event string, hook int) string {
	h := g.Hooks[hook]
	timeout := int64(600) // where the file names none
	if h.Timeout != nil {
		timeout = max(1, *h.Timeout)
	}
	run := map[string]any{"type": h.Type, "command": h.Command, "timeout": timeout, "async": h.Async}
	if h.Message != nil {
		run["statusMessage"] = *h.Message
	}
	value := map[string]any{"event_name": label(event), "hooks": []any{run}}
	if g.Matcher != nil && matched[event] {
		value["matcher"] = *g.Matcher
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return "" // not reached: maps of texts and numbers
	}
	sum := sha256.Sum256([]byte(strings.TrimSuffix(text.String(), "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// matched are the events for which stet sets a matcher. Codex ignores it elsewhere.
var matched = map[string]bool{"PreToolUse": true, "PostToolUse": true}

// label is the name of an event in the keys of approvals: PreToolUse is pre_tool_use.
func label(event string) string {
	var out strings.Builder
	for i, r := range event {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				out.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		out.WriteRune(r)
	}
	return out.String()
}
