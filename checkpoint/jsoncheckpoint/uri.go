package jsoncheckpoint

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// URI names a file or folder. It remembers its original form: text, an object with
// parts, or an object around one of these.
type URI struct {
	text string
	raw  json.RawMessage // nil unless it was decoded
}

// FileURI returns the URI of an absolute path.
func FileURI(path string) URI {
	u := url.URL{Scheme: "file", Path: uriPath(path)}
	return URI{text: u.String()}
}

// uriPath returns the form of a path in file URIs. It differs only for paths with a
// drive: they begin with a slash and use only slashes. Editors write drives in lower
// case.
func uriPath(path string) string {
	if !hasDrive(path) || len(path) > 2 && path[2] != '\\' && path[2] != '/' {
		return path
	}
	return "/" + strings.ToLower(path[:1]) + strings.ReplaceAll(path[1:], `\`, "/")
}

func hasDrive(path string) bool {
	return len(path) >= 2 && path[1] == ':' && ('a' <= path[0]|0x20 && path[0]|0x20 <= 'z')
}

// String returns the URI as text.
func (u URI) String() string { return u.text }

// Path returns the path of a file URI; ok is false for another scheme or host.
func (u URI) Path() (path string, ok bool) {
	parsed, err := url.Parse(u.text)
	if err != nil || parsed.Scheme != "file" || parsed.Host != "" && parsed.Host != "localhost" || parsed.Path == "" {
		return "", false
	}
	inside := strings.TrimPrefix(parsed.Path, "/")
	if path := uriPath(inside); path != inside {
		return path, true
	}
	return parsed.Path, true
}

// identity returns the same text for all forms of a file's URI: programs escape
// differently.
func identity(uri string) string {
	if path, ok := (URI{text: uri}).Path(); ok {
		return "file://" + path
	}
	return uri
}

// MarshalJSON writes the URI in its original form, or in the editor's.
func (u URI) MarshalJSON() ([]byte, error) {
	if u.raw != nil {
		return u.raw, nil
	}
	path, ok := u.Path()
	if !ok {
		return json.Marshal(u.text)
	}
	return json.Marshal(struct {
		Mid      int    `json:"$mid"`
		External string `json:"external"`
		Path     string `json:"path"`
		Scheme   string `json:"scheme"`
	}{1, u.text, path, "file"})
}

// UnmarshalJSON reads any of the forms.
func (u *URI) UnmarshalJSON(data []byte) error {
	text, err := uriText(data, 1)
	if err != nil {
		return err
	}
	u.text, u.raw = text, append(json.RawMessage(nil), data...)
	return nil
}

func uriText(data []byte, depth int) (string, error) {
	if text := strings.TrimSpace(string(data)); strings.HasPrefix(text, `"`) {
		var s string
		if err := json.Unmarshal(data, &s); err != nil || s == "" {
			return "", fmt.Errorf("%w: URI %.80s", ErrMalformed, data)
		}
		return s, nil
	}
	var parts struct {
		External  string          `json:"external"`
		Scheme    string          `json:"scheme"`
		Authority string          `json:"authority"`
		Path      string          `json:"path"`
		URI       json.RawMessage `json:"uri"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return "", fmt.Errorf("%w: URI: %v", ErrMalformed, err)
	}
	switch {
	case parts.External != "":
		return parts.External, nil
	case len(parts.URI) > 0 && depth > 0:
		return uriText(parts.URI, depth-1)
	case parts.Path != "":
		if parts.Scheme == "" {
			parts.Scheme = "file"
		}
		return (&url.URL{Scheme: parts.Scheme, Host: parts.Authority, Path: parts.Path}).String(), nil
	}
	return "", fmt.Errorf("%w: URI %.80s", ErrMalformed, data)
}

// folderURI writes an entry of a list of folders, which are wrapped.
type folderURI struct{ URI }

func (f folderURI) MarshalJSON() ([]byte, error) {
	if f.raw != nil {
		return f.raw, nil
	}
	return json.Marshal(struct {
		URI URI `json:"uri"`
	}{f.URI})
}
