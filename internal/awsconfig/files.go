package awsconfig

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// keyNames are the keys of a profile that belong together: they come from one file.
var keyNames = []string{"aws_access_key_id", "aws_secret_access_key", "aws_session_token"}

// files is what the shared files say.
type files struct {
	profiles map[string]section
	services map[string]section
}

// readFiles reads the shared files. What the credentials file says of a profile counts more.
func readFiles() (*files, error) {
	config, err := readFile("AWS_CONFIG_FILE", "config")
	if err != nil {
		return nil, err
	}
	credentials, err := readFile("AWS_SHARED_CREDENTIALS_FILE", "credentials")
	if err != nil {
		return nil, err
	}
	f := &files{profiles: make(map[string]section), services: make(map[string]section)}
	for name, s := range config {
		kind, rest, _ := strings.Cut(name, " ")
		switch {
		case kind == "profile" && rest != "":
			f.profiles[rest] = s
		case kind == "services" && rest != "":
			f.services[rest] = s
		case name == "default" && config["profile default"] == nil:
			f.profiles[name] = s
		}
	}
	for name, s := range credentials {
		f.profiles[name] = merged(f.profiles[name], s)
	}
	return f, nil
}

func merged(config, credentials section) section {
	all := maps.Clone(config)
	if all == nil {
		all = make(section)
	}
	for _, name := range keyNames {
		if credentials[name] != "" {
			for _, other := range keyNames {
				delete(all, other)
			}
		}
	}
	maps.Copy(all, credentials)
	return all
}

// readFile reads a file that a variable names, or one in the usual directory. A file that is
// not there is an empty one.
func readFile(variable, name string) (map[string]section, error) {
	path := os.Getenv(variable)
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, nil // nobody's home has no files
		}
		path = filepath.Join(home, ".aws", name)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the shared file of AWS tools: %w", err)
	}
	return parseINI(string(text)), nil
}

// profileName returns which profile counts, and whether somebody chose it.
func profileName() (name string, chosen bool) {
	name = cmp.Or(os.Getenv("AWS_PROFILE"), os.Getenv("AWS_DEFAULT_PROFILE"))
	return cmp.Or(name, "default"), name != ""
}
