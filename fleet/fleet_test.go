package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fleet"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

func TestMain(m *testing.M) { os.Exit(realservers.Run(m)) }

// backends makes an empty database and an empty bucket.
func backends(t testing.TB, version int) fleet.Config {
	t.Helper()
	s3 := realservers.S3(t)
	useKeys(t, s3)
	return fleet.Config{
		Database: realservers.Postgres(t, realservers.PostgresOptions{Version: version}).NewDatabase(t),
		Blobs:    s3.URL(s3.NewBucket(t)),
	}
}

// useKeys puts the keys of the bucket where they are looked for.
func useKeys(t testing.TB, s3 *realservers.S3Server) {
	t.Helper()
	access, secret := s3.Keys()
	t.Setenv("AWS_ACCESS_KEY_ID", access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
}

// node opens a fleet for the time of a test.
func node(t testing.TB, config fleet.Config) *fleet.Fleet {
	t.Helper()
	f, err := fleet.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

func open(t testing.TB, f *fleet.Fleet, tenant string) *stet.DB {
	t.Helper()
	db, err := f.Open(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close tenant %q: %v", tenant, err)
		}
	})
	return db
}

// talk saves a conversation of some turns and returns its last root.
func talk(ctx context.Context, db *stet.DB, id string, turns int) (blob.ID, error) {
	c, err := db.Conversations().Create(ctx, conversation.Info{ID: id, Title: "about " + id})
	if err != nil {
		return blob.ID{}, err
	}
	for n := range turns {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprintf("%s, turn %d, %d", id, n, rand.Uint64())})
		if err != nil {
			return blob.ID{}, err
		}
		if err := c.AppendTurn(ctx, turn); err != nil {
			return blob.ID{}, err
		}
		if _, err := c.Save(ctx, nil); err != nil {
			return blob.ID{}, err
		}
	}
	return c.Head().Root, nil
}

// mustCheck reads everything of a store.
func mustCheck(t testing.TB, db *stet.DB) {
	t.Helper()
	report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
	if err != nil || !report.OK() {
		t.Errorf("check: %+v, %v", report, err)
	}
}

func TestTwoNodesShareWhatTenantsHaveAndTenantsShareNothing(t *testing.T) {
	for _, version := range realservers.PostgresVersions() {
		t.Run(fmt.Sprint("postgres ", version), func(t *testing.T) {
			config := backends(t, version)
			first, second := node(t, config), node(t, config)
			here := open(t, first, "shop")
			root, err := talk(t.Context(), here, "c1", 3)
			if err != nil {
				t.Fatal(err)
			}
			large := blob.New(bytes.Repeat([]byte(fmt.Sprint(rand.Uint64())), 100_000))
			if err := here.Blobs().Put(t.Context(), large); err != nil {
				t.Fatal(err)
			}
			if err := here.Blobs().Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			there := open(t, second, "shop")
			info, err := there.Conversations().Get(t.Context(), "c1")
			if err != nil || info.Root != root || info.Save != 3 {
				t.Errorf("on the other node: %+v, %v", info, err)
			}
			if got, err := there.Blobs().Get(t.Context(), large.ID); err != nil || !bytes.Equal(got, large.Data) {
				t.Errorf("the large blob on the other node: %d bytes, %v", len(got), err)
			}
			mustCheck(t, there)
			for _, other := range []string{"", "shop2", "sho"} {
				db := open(t, second, other)
				if has, err := db.Blobs().Has(t.Context(), root, large.ID); err != nil || has[0] || has[1] {
					t.Errorf("tenant %q has what belongs to another: %v, %v", other, has, err)
				}
				if _, err := db.Conversations().Get(t.Context(), "c1"); !errors.Is(err, conversation.ErrNotFound) {
					t.Errorf("tenant %q: %v", other, err)
				}
			}
			if used, err := first.Usage(t.Context(), here); err != nil || used < int64(len(large.Data))/1000 {
				t.Errorf("usage: %d, %v", used, err)
			}
			if names, err := first.Tenants(t.Context()); err != nil || fmt.Sprint(names) != "[shop]" {
				t.Errorf("tenants: %v, %v", names, err)
			}
		})
	}
}

func TestSealedConversationsOfTenantsDoNotMeet(t *testing.T) {
	config := backends(t, 15)
	first, second := node(t, config), node(t, config)
	for _, tenant := range []string{"a", "b"} {
		db := open(t, first, tenant)
		if _, err := talk(t.Context(), db, "same", 4); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Archive(t.Context(), "same"); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Collect(t.Context(), &upkeep.CollectOptions{Grace: -1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tenant := range []string{"a", "b"} {
		db := open(t, second, tenant)
		if swept, err := db.SweepPacks(t.Context(), 1); err != nil || swept.Removed != 0 {
			t.Errorf("sweep of tenant %s: %+v, %v", tenant, swept, err)
		}
		if swept, err := second.Sweep(t.Context(), tenant, 0); err != nil || swept.Objects != 0 {
			t.Errorf("sweep of tenant %s: %+v, %v", tenant, swept, err)
		}
		c, err := db.Conversations().Open(t.Context(), "same")
		if err != nil {
			t.Fatal(err)
		}
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "on"})
		if err == nil {
			err = c.AppendTurn(t.Context(), turn)
		}
		if err == nil {
			_, err = c.Save(t.Context(), nil)
		}
		if err != nil {
			t.Errorf("go on with what was archived: %v", err)
		}
		mustCheck(t, db)
	}
}

func TestWordsAreFoundOnEveryNode(t *testing.T) {
	config := backends(t, 15)
	db := open(t, node(t, config), "shop")
	if _, err := talk(t.Context(), db, "zebra", 2); err != nil {
		t.Fatal(err)
	}
	index, err := db.Search(t.Context())
	if err == nil {
		_, err = index.Update(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	other := node(t, config)
	for tenant, want := range map[string]int{"shop": 3, "lab": 0, "": 0} {
		index, err := open(t, other, tenant).Search(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		page, err := index.Search(t.Context(), "zebra", nil)
		if err != nil || len(page.Hits) != want {
			t.Errorf("tenant %q: %d hits, want %d, %v", tenant, len(page.Hits), want, err)
		}
	}
}

func TestTokensHoldOnEveryNode(t *testing.T) {
	config := backends(t, 15)
	first, second := node(t, config), node(t, config)
	token, info, err := first.Tokens().Create(access.Grant{Tenant: "shop", Scope: access.Read})
	if err != nil {
		t.Fatal(err)
	}
	for n, f := range []*fleet.Fleet{first, second} {
		who, err := f.Tokens().Verify(token)
		if err != nil || who.Tenant != "shop" || who.Scope != access.Read {
			t.Errorf("node %d: %+v, %v", n, who, err)
		}
	}
	// Two nodes make tokens at the same time, and none is lost.
	made := make(chan error, 20)
	for n := range cap(made) {
		go func() {
			f := []*fleet.Fleet{first, second}[n%2]
			_, _, err := f.Tokens().Create(access.Grant{Tenant: fmt.Sprint("t", n), Scope: access.Write})
			made <- err
		}()
	}
	for range cap(made) {
		if err := <-made; err != nil {
			t.Error(err)
		}
	}
	if infos, err := node(t, config).Tokens().List(); err != nil || len(infos) != 1+cap(made) {
		t.Errorf("%d tokens, %v", len(infos), err)
	}
	if _, err := second.Tokens().Revoke(info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Tokens().Verify(token); !errors.Is(err, access.ErrDenied) {
		t.Errorf("a revoked token on the node that revoked it: %v", err)
	}
	if _, err := node(t, config).Tokens().Verify(token); !errors.Is(err, access.ErrDenied) {
		t.Errorf("a revoked token on another node: %v", err)
	}
}

func TestAnEncryptedFleetShowsNothing(t *testing.T) {
	config := backends(t, 15)
	config.Keyring = filepath.Join(t.TempDir(), "keys.json")
	unlock := keyring.Raw(bytes.Repeat([]byte{7}, 32))
	if _, err := keyring.Create(config.Keyring, unlock); err != nil {
		t.Fatal(err)
	}
	if _, err := fleet.Open(t.Context(), config); !errors.Is(err, stet.ErrLocked) {
		t.Fatalf("without a key: %v", err)
	}
	config.Unlock = &unlock
	f := node(t, config)
	db := open(t, f, "shop")
	if _, err := talk(t.Context(), db, "canary", 2); err != nil {
		t.Fatal(err)
	}
	var found bool
	row := f.Postgres().Pool().QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM stet.blobs WHERE position('\x63616e617279'::bytea IN data) > 0)
		OR EXISTS (SELECT 1 FROM stet.rows WHERE position('\x61626f757420'::bytea IN value) > 0)`)
	if err := row.Scan(&found); err != nil || found {
		t.Errorf("the database shows contents: %v, %v", found, err)
	}
	mustCheck(t, open(t, node(t, config), "shop"))
	// A node that was given no keyring writes to no tenant, used or new.
	bare := config
	bare.Keyring, bare.Unlock = "", nil
	for _, tenant := range []string{"shop", "new"} {
		if _, err := node(t, bare).Open(t.Context(), tenant); !errors.Is(err, stet.ErrNoKeyring) {
			t.Errorf("tenant %s without the keyring: %v", tenant, err)
		}
	}
	// What belongs to one tenant is nothing under another's name.
	tenant, err := f.Postgres().Tenant("shop")
	if err != nil {
		t.Fatal(err)
	}
	thief, err := f.Postgres().Tenant("thief")
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range tenant.Rows().Scan(t.Context(), kv.Range{}, kv.ScanOptions{}) {
		if err == nil {
			err = thief.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: row.Key, Value: row.Value}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := open(t, f, "thief").Conversations().Get(t.Context(), "canary"); err == nil {
		t.Error("rows of one tenant can be read under another's name")
	}
}

func TestOpenRefusesWhatIsWrong(t *testing.T) {
	const canary = "pässw0rd-canary"
	good := backends(t, 15)
	for name, change := range map[string]func(*fleet.Config){
		"no database": func(c *fleet.Config) { c.Database = "/var/lib/stet" },
		"nobody listens": func(c *fleet.Config) {
			c.Database = "postgres://stet:" + canary + "@127.0.0.1:1/stet?connect_timeout=2"
		},
		"no such bucket":    func(c *fleet.Config) { c.Blobs = strings.Replace(c.Blobs, "s3://test-", "s3://none-", 1) },
		"no bucket address": func(c *fleet.Config) { c.Blobs = "s3://" },
		"no keyring":        func(c *fleet.Config) { c.Keyring = "/nonexistent/keys.json" },
	} {
		t.Run(name, func(t *testing.T) {
			config := good
			change(&config)
			f, err := fleet.Open(t.Context(), config)
			if err == nil {
				t.Fatal("it was opened", f.Close())
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
	if _, err := node(t, good).Open(t.Context(), "No Tenant"); !errors.Is(err, access.ErrInvalid) {
		t.Errorf("a bad name of a tenant: %v", err)
	}
}
