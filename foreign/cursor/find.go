package cursor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
)

// Location is the location of a store.
type Location struct {
	Path string
	Kind Kind
	// Workspace is the URI of the folder or workspace file of the store, if known.
	Workspace string
	// Size is the size of the file in bytes.
	Size int64
}

// FindOptions configure Find. The zero value, and nil, search the locations of the
// current user.
type FindOptions struct {
	// GOOS is the operating system; the running one if empty.
	GOOS string
	// Home is the home directory; that of the user if empty.
	Home string
	// Config is the directory of application settings (on Windows %APPDATA%, else
	// on Linux $XDG_CONFIG_HOME); that of the user if empty and Home is empty too.
	Config string
}

// Find looks in the usual locations for stores of the editor, its workspaces and its
// command line. It skips locations that do not exist or cannot be read.
func Find(opts *FindOptions) []Location {
	var o FindOptions
	if opts != nil {
		o = *opts
	}
	o.complete()
	var out []Location
	for _, product := range []string{"Cursor", "Cursor Nightly"} {
		user := filepath.Join(o.Config, product, "User")
		out = appendFile(out, filepath.Join(user, "globalStorage", "state.vscdb"), KindEditor, "")
		for _, dir := range subdirs(filepath.Join(user, "workspaceStorage")) {
			out = appendFile(out, filepath.Join(dir, "state.vscdb"), KindEditor, readWorkspace(dir))
		}
	}
	for _, workspace := range subdirs(filepath.Join(o.Home, ".cursor", "chats")) {
		for _, chat := range subdirs(workspace) {
			out = appendFile(out, filepath.Join(chat, "store.db"), KindAgent, "")
		}
	}
	return out
}

// Places names the locations that Find searches, for people.
func Places(opts *FindOptions) []string {
	var o FindOptions
	if opts != nil {
		o = *opts
	}
	o.complete()
	return []string{
		filepath.Join(o.Config, "Cursor", "User", "globalStorage", "state.vscdb"),
		filepath.Join(o.Config, "Cursor", "User", "workspaceStorage", "*", "state.vscdb"),
		filepath.Join(o.Config, "Cursor Nightly", "User"),
		filepath.Join(o.Home, ".cursor", "chats", "*", "*", "store.db"),
	}
}

// Inside returns the stores of the SDK in the subdirectories of a directory, in order.
func Inside(dir string) []string {
	var out []string
	for _, sub := range subdirs(dir) {
		if isSDK(sub) {
			out = append(out, sub)
		}
	}
	return out
}

// isSDK reports whether a directory has the files of an SDK store.
func isSDK(dir string) bool {
	for _, name := range []string{"index.db", "agents.ndjson", "checkpoints.ndjson"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// complete fills in the directories of the current user.
func (o *FindOptions) complete() {
	current := o.Home == ""
	if o.GOOS == "" {
		o.GOOS = runtime.GOOS
	}
	if current {
		o.Home, _ = os.UserHomeDir()
	}
	if o.Config != "" {
		return
	}
	switch o.GOOS {
	case "darwin":
		o.Config = filepath.Join(o.Home, "Library", "Application Support")
	case "windows":
		o.Config = filepath.Join(o.Home, "AppData", "Roaming")
		if dir := os.Getenv("APPDATA"); current && dir != "" {
			o.Config = dir
		}
	default:
		o.Config = filepath.Join(o.Home, ".config")
		if dir := os.Getenv("XDG_CONFIG_HOME"); current && dir != "" {
			o.Config = dir
		}
	}
}

func appendFile(out []Location, path string, kind Kind, workspace string) []Location {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return out
	}
	return append(out, Location{path, kind, workspace, info.Size()})
}

// readWorkspace reads which folder a directory of workspaceStorage is for.
func readWorkspace(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, "workspace.json"))
	if err != nil {
		return ""
	}
	var w struct{ Folder, Workspace, Configuration string }
	if json.Unmarshal(data, &w) != nil {
		return ""
	}
	for _, uri := range []string{w.Folder, w.Workspace, w.Configuration} {
		if uri != "" {
			return uri
		}
	}
	return ""
}

// subdirs returns the directories in a directory, in order.
func subdirs(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}
