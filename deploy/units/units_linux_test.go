// Package units_test starts the systemd units of deploy/systemd under a systemd that it
// boots in namespaces of its own, beside a database and a bucket that are units, too.
// `make test-deploy` runs it.
package units_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test program be the one that looks at the units from inside.
func TestMain(m *testing.M) {
	if os.Getenv("STET_UNITS_INSIDE") == "1" {
		os.Exit(inside())
	}
	os.Exit(m.Run())
}

// TestUnitsStart starts a node, keeps house, kills and stops it, as the guide says, with
// the credentials as files that only root reads.
func TestUnitsStart(t *testing.T) {
	program, bucket := os.Getenv("STET_UNITS"), os.Getenv("VERSITYGW")
	if program == "" {
		t.Skip("make test-deploy runs this")
	}
	if os.Geteuid() != 0 {
		t.Skip("a systemd of its own needs root")
	}
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		t.Skip("this system has no systemd")
	}
	postgres, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(postgres) == 0 || bucket == "" {
		t.Skip("there is no Postgres, or no versitygw")
	}
	f := &files{t: t, dir: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f.copy(program, "usr/bin/stet", 0o755)
	f.copy(bucket, "usr/bin/try-bucket", 0o755)
	f.copy(self, "usr/bin/try", 0o755)
	f.copy("../systemd/stet-house.sh", "usr/lib/stet/stet-house.sh", 0o755)
	for _, unit := range []string{"stet.service", "stet-house.service", "stet-house.timer"} {
		f.copy("../systemd/"+unit, "etc/systemd/system/"+unit, 0o644)
	}
	f.settings()
	f.certificate()
	f.image(os.Getenv("STET_UNITS_IMAGE"))
	f.backends(filepath.Dir(postgres[0]))
	boot := exec.CommandContext(t.Context(), "sh", "boot.sh", f.dir, "try.target")
	out, err := boot.CombinedOutput()
	report, _ := os.ReadFile(filepath.Join(f.dir, "out", "report"))
	t.Logf("%s%s", out, report)
	if !strings.HasSuffix(string(report), "\nall is well\n") {
		journal, _ := os.ReadFile(filepath.Join(f.dir, "out", "journal"))
		t.Errorf("the units do not work: %v\n%.20000s", err, journal)
	}
}

// files are what lies above the files of this system.
type files struct {
	t   *testing.T
	dir string
}

func (f *files) write(name, text string, mode os.FileMode) {
	f.t.Helper()
	path := filepath.Join(f.dir, "files", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		f.t.Fatal(err)
	}
}

func (f *files) copy(from, name string, mode os.FileMode) {
	f.t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(name, string(data), mode)
}

// settings are those of stet.env, with addresses of this machine. Passwords are in the
// files of credentials only.
func (f *files) settings() {
	f.t.Helper()
	data, err := os.ReadFile("../systemd/stet.env")
	if err != nil {
		f.t.Fatal(err)
	}
	text := string(data)
	for name, value := range map[string]string{
		"STET_STORE": "postgres://stet@localhost/postgres",
		"STET_BLOBS": "s3://stet/fleet?region=us-east-1&endpoint=http://localhost:7070",
	} {
		line := regexp.MustCompile(`(?m)^` + name + `=.*$`)
		if !line.MatchString(text) {
			f.t.Errorf("stet.env has no %s", name)
		}
		text = line.ReplaceAllString(text, name+"="+value)
	}
	f.write("etc/stet/stet.env", text, 0o644)
	f.write("etc/stet/pgpass", "localhost:5432:postgres:stet:of-the-database\n", 0o600)
	f.write("etc/stet/aws-credentials", "[default]\naws_access_key_id = stet\naws_secret_access_key = of-the-bucket\n", 0o600)
	f.write("etc/stet/operator-token", operatorToken+"\n", 0o600)
	f.write("etc/hosts", "127.0.0.1 localhost\n", 0o644)
}

const operatorToken = "0123456789abcdef0123456789abcdef"

// certificate makes one for localhost.
func (f *files) certificate() {
	f.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		f.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write("etc/stet/cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), 0o644)
	f.write("etc/stet/key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), 0o600)
}

// backends are units for a database, a bucket and the program that looks at ours. When
// that ends, so does systemd.
func (f *files) backends(postgres string) {
	f.t.Helper()
	f.write("etc/try-password", "of-the-database\n", 0o644)
	f.write("etc/systemd/system/try-database.service", `[Service]
Type=notify
TimeoutStartSec=5min
User=nobody
StateDirectory=try-database
StateDirectoryMode=0700
ExecStartPre=`+postgres+`/initdb -D %S/try-database -U stet -A scram-sha-256 --pwfile=/etc/try-password --no-sync --no-locale
ExecStart=`+postgres+`/postgres -D %S/try-database -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off
`, 0o644)
	f.write("etc/systemd/system/try-bucket.service", `[Service]
Environment=ROOT_ACCESS_KEY=stet ROOT_SECRET_KEY=of-the-bucket
StateDirectory=try-bucket try-bucket/meta try-bucket/objects/stet
ExecStart=/usr/bin/try-bucket localhost:7070 us-east-1 %S/try-bucket/meta %S/try-bucket/objects
`, 0o644)
	f.write("etc/systemd/system/try-network.service", `[Service]
Type=oneshot
ExecStart=/usr/bin/try
Environment=STET_UNITS_INSIDE=1 STET_UNITS_LOOPBACK=1
`, 0o644)
	f.write("etc/systemd/system/try.service", `[Unit]
Requires=try-network.service try-database.service try-bucket.service
After=try-network.service try-database.service try-bucket.service
SuccessAction=exit
FailureAction=exit

[Service]
Type=oneshot
TimeoutStartSec=10min
Environment=STET_UNITS_INSIDE=1
StandardOutput=append:/out/report
StandardError=append:/out/report
ExecStart=/usr/bin/try
`, 0o644)
	for _, unit := range []string{"try-database", "try-bucket"} {
		f.write("etc/systemd/system/"+unit+".service.d/network.conf", "[Unit]\nRequires=try-network.service\nAfter=try-network.service\n", 0o644)
	}
	f.write("etc/systemd/system/try.target", "[Unit]\nRequires=try.service\nOnFailure=exit.target\n", 0o644)
}
