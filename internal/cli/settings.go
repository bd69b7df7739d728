package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/adrg/xdg"

	"github.com/stet-dev/stet/access"
)

// setting is an option for all commands.
type setting struct {
	key, value string // value is the default
	check      func(string) error
	about      string
}

// knownSettings lists all settings. Each can also be given in the environment,
// see env.
var knownSettings = []setting{
	{"store", "", anything, "Store to use if --store is not given: a directory or URL. The default is " + defaultStoreText + "."},
	{"blobs", "", anything, "Bucket of a store in a database if --blobs is not given, such as s3://bucket/prefix?region=…"},
	{"tenant", "", isTenant, "Tenant whose store the command line uses in a database. The default is the tenant default."},
	{"keyring", "", anything, "File with the keys of an encrypted store in a database; each node needs a copy."},
	{"remote.url", "", isCopyPlace, "Server (http or https) or bucket (s3://bucket/prefix?region=…) that gets a copy of every blob of a local store, if --remote is not given."},
	{"remote.token_file", "", anything, "File with the token for the server at remote.url; the write scope is enough."},
	{"remote.decrypt", "false", isBool, "Whether an encrypted store may copy its content to a server that is not encrypted."},
	{"remote.wait_ms", "5000", isNumber, "How long a command sends missing blobs to the remote before it ends, in milliseconds. Later commands send the rest."},
	{"color", "auto", oneOf("auto", "never"), "When to use colour: auto (on a terminal) or never."},
	{"pager", "auto", oneOf("auto", "never"), "When log, show and diff use a pager: auto (on a terminal: $PAGER, or less -FRX) or never."},
	{"author", "", anything, "Name in the log of operations. The default is the login name."},
	{"capture.enabled", "true", isBool, "Whether to make checkpoints."},
	{"capture.ignore", "true", isBool, "Whether to respect .gitignore files. Ignored files are captured only if an agent wrote them or an earlier checkpoint has them."},
	{"capture.ignored", "auto", oneOf("auto", "off", "notice", "small"), "What to do with ignored files, such as a .env, that exist when an agent's turn begins: notice (report those that change during the turn), small (capture those of up to 64 KiB, at most 200, so that a rewind restores them), off, or auto: small in an encrypted store, otherwise notice, because they often hold secrets."},
	{"capture.exclude", "", anything, "Patterns of paths that are not captured, as in .gitignore and separated by commas, such as \"*.log,/private/\". Unlike ignored files, they are left out of later checkpoints even if an agent wrote them or an earlier checkpoint has them."},
	{"capture.secrets", "auto", oneOf("auto", "skip", "capture"), "What to do with files that usually hold secrets, such as .env, private keys and credentials: skip (capture them only if an agent wrote them or an earlier checkpoint has them), capture, or auto: skip, unless the store is encrypted or capture.ignored is small. A line such as \"!.env\" in .stetignore captures a file in any case."},
	{"capture.max_file", "256MiB", isSize, "Size above which a file is reported instead of captured."},
	{"capture.threshold_ms", "0", isNumber, "Minimum time in milliseconds between two automatic checkpoints."},
	{"capture.reread_days", "7", isNumber, "Number of days within which checkpoints read every file again, some of them each time, regardless of time stamps; 0 for never."},
	{"capture.force", "false", isBool, "Whether a home directory or the root of the file system may be a workspace; the store must still be outside of it."},
	{"rewind.enabled", "true", isBool, "Whether rewinds are allowed."},
	{"rewind.fast_checkpoints", "true", isBool, "Whether a rewind handles a few files at the same time. If false, it handles one file at a time, for slow or fragile file systems. Both are all or nothing."},
	{"agents.blob_storage_format_v1", "true", isBool, "Whether snapshots of cloud agents that name no format have format v1. If false, they have the legacy format."},
	{"run.quiet_ms", "1500", isNumber, "How long 'stet run' waits after the last change before it makes a checkpoint, in milliseconds."},
	{"hook.wait_ms", "2000", isNumber, "How long a connected agent waits for the checkpoint before a turn, in milliseconds. A checkpoint that takes longer is finished while the agent works; the start of the turn is then not exact."},
	{"compact.background", "true", isBool, "Whether stet starts background processes: to compress content after a command that stored a lot, and to copy the earlier sessions of connected agents. If false, commands compress a part themselves, and only 'stet import' copies earlier sessions."},
	{"gc.max_age", "", isAge, "'stet gc' removes saves of conversations that are older than this, such as 90d."},
	{"gc.max_saves", "0", isNumber, "'stet gc' keeps this many of the newest saves of each conversation; 0 keeps all."},
	{"gc.max_bytes", "", isSize, "'stet gc' removes the oldest saves until conversations take no more than this, such as 2GiB."},
	{"gc.checkpoint_max_age", "", isAge, "'stet gc' removes checkpoints that are older than this, such as 90d."},
	{"gc.checkpoint_max_count", "0", isNumber, "'stet gc' keeps this many of the newest checkpoints of each directory; 0 keeps all."},
	{"gc.checkpoint_max_bytes", "", isSize, "'stet gc' removes the oldest checkpoints until all take no more than this, such as 10GiB."},
	{"house.enabled", "true", isBool, "Whether the servers of a store in a database archive and collect automatically, one server at a time, for all tenants."},
	{"house.archive_every", "24h", isAge, "How often servers archive; empty for never. Archiving needs a bucket."},
	{"house.archive_idle", "30d", isAge, "Time without a save after which servers archive a conversation."},
	{"house.collect_every", "24h", isAge, "How often servers collect, like 'stet gc' with the settings gc.*; empty for never."},
	{"house.grace", "24h", isAge, "Minimum age of the content that servers remove when they collect."},
	{"serve.mode", "local", oneOf("local", "server"), "Mode of 'stet serve': local (the owner, on this machine) or server (tenants with tokens)."},
	{"serve.listen", "127.0.0.1:7717", anything, "Address and port of 'stet serve'; port 0 takes a free one."},
	{"serve.hosts", "", anything, "Host names of the server in addition to loopback and those of the certificate, separated by commas."},
	{"serve.tls_cert", "", anything, "File with the server's certificate. It is read again when it changes."},
	{"serve.tls_key", "", anything, "File with the key of the certificate."},
	{"serve.insecure", "false", isBool, "Whether to allow server mode without TLS from other machines, for use behind a proxy with TLS."},
	{"serve.token_file", "", anything, "File with the owner's token (local) or the operator's (server). The default is token in the store's directory."},
	{"serve.workspaces", "", anything, "Directories that clients may capture and rewind, separated by commas. In server mode, write TENANT=DIR, or {tenant} in the path."},
	{"serve.quota_bytes", "", isSize, "Number of bytes that a tenant may store, such as 10GiB; empty for no limit."},
	{"serve.quota_requests", "0", isNumber, "Number of calls that a tenant may start per second; 0 for no limit."},
	{"serve.quota_streams", "0", isNumber, "Number of streams that a tenant may have open; 0 for no limit."},
	{"serve.streams_per_peer", "2000", isNumber, "Number of streams that may be open from one address."},
	{"serve.answer_bytes", "256MiB", isSize, "Memory limit for all running answers together. A call that would exceed it waits."},
	{"serve.stream_wait_ms", "20000", isNumber, "How long a live read of a stream waits for data, in milliseconds. A proxy in front must wait longer."},
	{"serve.local_webhooks", "false", isBool, "Whether tenants may send webhooks to addresses of the server's machine, for example in a test."},
	{"serve.open_stores", "128", isNumber, "Number of tenants' stores that are kept open."},
	{"serve.audit", "", anything, "File of the audit log. The default is audit.jsonl in the store's directory in server mode, none in local mode."},
	{"serve.audit_max", "64MiB", isSize, "Size at which the audit log is rotated."},
	{"serve.audit_files", "8", isNumber, "How many rotated audit files are kept; older ones are removed."},
	{"serve.log", "off", oneOf("off", "json", "text"), "Log of requests on standard error: off, json or text."},
	{"serve.agent", "none", oneOf("none", "scripted", "openai"), "Agent that clients can run on the server."},
	{"serve.agent_script", "", anything, "File with the script of the scripted agent; by default it plays a demonstration."},
	{"serve.agent_url", "", anything, "Address of an endpoint for OpenAI's chat completions, without /chat/completions."},
	{"serve.agent_model", "", anything, "Model to request from the endpoint."},
	{"serve.agent_key_file", "", anything, "File with the key of the endpoint."},
}

// earlierKeys are the names that settings had before. They are still read.
var earlierKeys = map[string]string{"settle.background": "compact.background", "run.settle_ms": "run.quiet_ms"}

// earlier returns the name that a setting had before, or "".
func (s setting) earlier() string {
	for old, key := range earlierKeys {
		if key == s.key {
			return old
		}
	}
	return ""
}

func anything(string) error { return nil }

func isBool(text string) error {
	if text != "true" && text != "false" {
		return fmt.Errorf("invalid value %q; use true or false", text)
	}
	return nil
}

func isNumber(text string) error {
	if _, err := strconv.ParseUint(text, 10, 31); err != nil {
		return fmt.Errorf("%q is not a number", text)
	}
	return nil
}

func isSize(text string) error {
	_, err := parseSize(text)
	return err
}

func isAge(text string) error {
	_, err := parseAge(text)
	return err
}

func isTenant(text string) error {
	if text == "" {
		return nil
	}
	return access.CheckTenant(text)
}

func oneOf(words ...string) func(string) error {
	return func(text string) error {
		if !slices.Contains(words, text) {
			return fmt.Errorf("invalid value %q; use one of %s", text, strings.Join(words, ", "))
		}
		return nil
	}
}

func (s setting) env() string { return envOf(s.key) }

func envOf(key string) string {
	return "STET_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// literal formats a value for the file.
func (s setting) literal(value string) string {
	if isBool(value) == nil || isNumber(value) == nil {
		return value
	}
	return strconv.Quote(value)
}

// decided is the value of a setting and where it comes from.
type decided struct{ value, source string }

// settings are the values of all settings.
type settings map[string]decided

func (s settings) text(key string) string { return s[key].value }
func (s settings) on(key string) bool     { return s[key].value == "true" }

// list splits a value at commas.
func (s settings) list(key string) (out []string) {
	for part := range strings.SplitSeq(s[key].value, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func (s settings) number(key string) int64 {
	n, _ := strconv.ParseInt(s[key].value, 10, 64) // checked when it was read
	return n
}

func (s settings) size(key string) int64 {
	n, _ := parseSize(s[key].value) // checked when it was read
	return n
}

// settingsFile is --config, STET_CONFIG or the default path.
func (a *app) settingsFile() string {
	for _, path := range []string{a.config, os.Getenv("STET_CONFIG")} {
		if path != "" {
			return path
		}
	}
	return filepath.Join(xdg.ConfigHome, "stet", "config.toml")
}

// settings reads the defaults, the file and the environment, each overriding the one
// before.
func (a *app) settings() (settings, error) {
	path := a.settingsFile()
	written, err := readSettings(path)
	if err == nil && written == nil && a.config != "" {
		err = fs.ErrNotExist // it was named explicitly
	}
	if err != nil {
		return nil, usage(fmt.Errorf("settings in %s: %w", path, err))
	}
	all := make(settings, len(knownSettings))
	for _, s := range knownSettings {
		d := decided{s.value, "default"}
		if value, ok := written[s.key]; ok {
			d = decided{value, path}
		}
		for _, key := range []string{s.earlier(), s.key} {
			name := envOf(key)
			value := os.Getenv(name)
			if key == "" || value == "" {
				continue
			}
			if err := s.check(value); err != nil {
				return nil, usage(fmt.Errorf("%s: %w", name, err))
			}
			d = decided{value, "environment " + name}
		}
		all[s.key] = d
	}
	return all, nil
}

// readSettings reads the file; a missing one is empty.
func readSettings(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseSettings(string(data))
}

func parseSettings(text string) (map[string]string, error) {
	var tree map[string]any
	if _, err := toml.Decode(text, &tree); err != nil {
		return nil, err
	}
	values := make(map[string]string)
	return values, flatten("", tree, values)
}

// flatten writes nested tables as dotted keys and checks each value.
func flatten(prefix string, tree map[string]any, into map[string]string) error {
	for name, value := range tree {
		key := prefix + name
		if table, ok := value.(map[string]any); ok {
			if err := flatten(key+".", table, into); err != nil {
				return err
			}
			continue
		}
		s, err := settingOf(key)
		if err != nil {
			return err
		}
		text := fmt.Sprint(value)
		if err := s.check(text); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if _, given := into[s.key]; given && key != s.key {
			continue // under its present name
		}
		into[s.key] = text
	}
	return nil
}

func settingOf(key string) (setting, error) {
	if now := earlierKeys[key]; now != "" {
		key = now
	}
	for _, s := range knownSettings {
		if s.key == key {
			return s, nil
		}
	}
	return setting{}, fmt.Errorf("unknown setting %q; see 'stet config explain'", key)
}

// useSettings applies the settings for every verb.
func (a *app) useSettings() error {
	all, err := a.settings()
	if err != nil {
		return err
	}
	if a.storeFlag = a.store != ""; !a.storeFlag {
		a.store = all.text("store")
	}
	if a.bucket = a.blobs; a.bucket == "" {
		a.bucket = all.text("blobs")
	}
	a.tenant, a.keyring = all.text("tenant"), all.text("keyring")
	a.background = all.on("compact.background")
	if err := a.useRemote(all); err != nil {
		return err
	}
	if all.text("color") == "never" {
		a.noColor = true
	}
	if all.text("pager") == "never" {
		a.noPager = true
	}
	return nil
}

// settingsBelow returns the settings with a key prefix.
func settingsBelow(prefix string) []setting {
	var out []setting
	for _, s := range knownSettings {
		if strings.HasPrefix(s.key, prefix) {
			out = append(out, s)
		}
	}
	return out
}
