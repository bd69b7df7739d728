package workspace

import (
	"crypto/sha256"
	"strings"
)

// SecretFiles are patterns of files that usually hold secrets, for Options.Secrets:
// environments, private keys and credentials. The examples that projects keep beside them,
// and test data, do not match.
var SecretFiles = []string{
	".env", ".env.*", "*.env",
	"!.env.example", "!.env.*.example", "!.env.sample", "!.env.template", "!.env.dist", "!.env.defaults", "!example.env", "!sample.env",
	"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
	".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd", ".pypirc", ".git-credentials", ".dockercfg", ".vault-token",
	"credentials", "credentials.json", "credentials.yml", "credentials.yaml", "credentials.toml",
	"secrets.json", "secrets.yml", "secrets.yaml", "secrets.toml",
	"client_secret*.json", "service-account*.json", "service_account*.json", "*.tfstate", "kubeconfig",
	"!**/testdata/**", "!**/test/**", "!**/tests/**", "!**/fixtures/**",
}

// given holds the rules of the options.
type given struct {
	exclude, secrets []pattern
	sum              ruleSum // zero without rules
}

func (o *Options) given() given {
	if len(o.Exclude) == 0 && len(o.Secrets) == 0 {
		return given{}
	}
	exclude, secrets := strings.Join(o.Exclude, "\n"), strings.Join(o.Secrets, "\n")
	sum := sha256.Sum256([]byte(exclude + "\x00" + secrets))
	return given{exclude: parseIgnore([]byte(exclude)), secrets: parseIgnore([]byte(secrets)), sum: ruleSum(sum[:8])}
}

func (g *given) empty() bool { return g.sum == ruleSum{} }

// rules returns the rules above the workspace's own files. They match nothing by
// themselves; they give a directory whose verdicts were made under other options another
// fingerprint.
func (g *given) rules() *rules {
	if g.empty() {
		return nil
	}
	return &rules{sum: g.sum}
}

// reason returns why the options leave a path out, or "".
func (g *given) reason(path, name string, isDir bool) Reason {
	if p := lastMatch(g.exclude, "", path, name, isDir); p != nil && !p.negative {
		return ReasonExcluded
	}
	if isDir {
		return "" // a directory called credentials may hold anything
	}
	if p := lastMatch(g.secrets, "", path, name, false); p != nil && !p.negative {
		return ReasonSecret
	}
	return ""
}

// LeftOut returns why the patterns of the options leave out a file that exists, or "". It
// does not look at ignore files.
func (o *Options) LeftOut(path string) Reason {
	g := o.given()
	if g.empty() {
		return ""
	}
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		dir := path[:i]
		if why := g.reason(dir, lastName(dir), true); why != "" {
			return why
		}
	}
	return g.reason(path, lastName(path), false)
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// rule returns why a rule leaves a name out, or "". Ignore files come before the list of
// secrets: what they exclude is ignored, and a .stetignore can allow a secret.
func (w *worker) rule(j *dirJob, name string, kind fileKind) Reason {
	path := join(j.path, name)
	why := w.s.given.reason(path, name, kind == isDir)
	switch {
	case why == ReasonExcluded:
		return why
	case j.partial || j.rules.ignores(path, name, kind == isDir):
		return ReasonIgnored
	case why == ReasonSecret && j.rules.allows(path, name):
		return ""
	}
	return why
}
