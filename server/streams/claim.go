package streams

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/subscription"
)

// claimPrefix marks the tokens with which workers answer for a wake.
const claimPrefix = "stetds"

// errToken says that a worker has no token for the wake.
var errToken = fault.Named(fault.Denied, "invalid-wake-token", "the token of the wake is not valid")

// Claim is a token with which a worker answers for one wake of one subscription. The
// worker needs no other token.
type Claim struct {
	// Owner is the principal on whose behalf it was made.
	Owner string
	// Message is its content, and Code is the code that Options.Sign makes over that.
	Message, Code []byte
	generation    uint64
}

// ClaimOf returns the claim of a request that answers for a wake; false for any other
// request, and for one with a token of another kind.
func ClaimOf(r *http.Request) (Claim, bool) {
	if r.Method != http.MethodPost { // also a request that is only a token
		return Claim{}, false
	}
	at, ok := routeOf(r.URL)
	if !ok || at.rest != "" || at.action != "ack" && at.action != "callback" && at.action != "release" {
		return Claim{}, false
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	parts := strings.Split(token, "_")
	if !strings.EqualFold(scheme, "Bearer") || len(parts) != 4 || parts[0] != claimPrefix {
		return Claim{}, false
	}
	generation, err := strconv.ParseUint(parts[2], 10, 64)
	code, codeErr := hex.DecodeString(parts[3])
	if err != nil || codeErr != nil {
		return Claim{}, false
	}
	return Claim{Owner: parts[1], Message: claimMessage(at.id, generation), Code: code, generation: generation}, true
}

func claimMessage(id string, generation uint64) []byte {
	return fmt.Appendf(nil, "stet claim\n%s\n%d", id, generation)
}

// token returns the token for a wake.
func (d *hooks) token(owner, id string, generation uint64) (string, error) {
	code, err := d.h.opts.Sign(owner, claimMessage(id, generation))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s_%s_%d_%x", claimPrefix, owner, generation, code), nil
}

// verify returns the generation that the token of a request is for.
func (d *hooks) verify(r *http.Request) (uint64, error) {
	c, ok := ClaimOf(r)
	if !ok {
		return 0, errToken
	}
	want, err := d.h.opts.Sign(c.Owner, c.Message)
	if err != nil || !hmac.Equal(want, c.Code) {
		return 0, errToken
	}
	return c.generation, nil
}

// signingKey signs the requests to webhooks. It is derived with the function that signs on behalf
// of the owner of a subscription, so it is stored nowhere, is the same on every server, and
// becomes invalid with the token of the owner.
type signingKey struct {
	id      string
	private ed25519.PrivateKey
}

func (d *hooks) key(owner string) (signingKey, error) {
	seed, err := d.h.opts.Sign(owner, []byte("stet webhook key"))
	if err != nil {
		return signingKey{}, err
	}
	k := signingKey{private: ed25519.NewKeyFromSeed(seed)}
	sum := sha256.Sum256(k.public())
	k.id = "ds_" + hex.EncodeToString(sum[:8])
	return k, nil
}

func (k signingKey) public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// sign returns the header of a request with a body.
func (k signingKey) sign(now time.Time, body []byte) string {
	message := append(fmt.Appendf(nil, "%d.", now.Unix()), body...)
	return fmt.Sprintf("t=%d,kid=%s,ed25519=%s", now.Unix(), k.id, base64.RawURLEncoding.EncodeToString(ed25519.Sign(k.private, message)))
}

// keys shows the public keys of the webhooks of this store.
func (d *hooks) keys(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		return errMethod
	}
	owners := map[string]bool{d.h.opts.Owner(r.Context()): true}
	for sub, err := range d.h.opts.Subscriptions.List(r.Context()) {
		if err != nil {
			return err
		}
		if sub.Kind == subscription.Webhook {
			owners[sub.Owner] = true
		}
	}
	keys := []map[string]string{}
	for owner := range owners {
		k, err := d.key(owner)
		if err != nil {
			continue // its token is no longer valid
		}
		keys = append(keys, map[string]string{
			"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": k.id, "x": base64.RawURLEncoding.EncodeToString(k.public()),
		})
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "private, max-age=300")
	return encodeJSON(w, http.StatusOK, map[string]any{"keys": keys})
}
