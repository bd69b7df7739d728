package pgsearch

import (
	"crypto/sha256"
	"encoding/base32"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-dev/stet/search/internal/corpus"
)

// Limits of the database's vectors: positions, how often a word has one, and the
// bytes of words and positions together, of which some are left for alignment.
const (
	maxPosition = 16382
	maxPlaces   = 255
	maxVector   = 900 << 10
)

// pathLabel marks the words of a path.
const pathLabel = "A"

// scope comes before every word of a tenant, so that the entries of one are not in
// the way of another's. Two tenants may share one: rows tell them apart.
func scope(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:])[:6]) + "-"
}

// vector collects the words of a message with their places. Those of the path come
// first, and none of them stands directly before one of the body.
type vector struct {
	places map[string][]string
	next   int
	bytes  int
	// exact says that every word has all its places, so that phrases can be looked
	// up; otherwise only the words can.
	exact bool
}

func newVector(d *corpus.Doc) *vector {
	v := &vector{places: make(map[string][]string), next: 1, exact: true}
	v.add(d.Path, pathLabel)
	v.next++
	v.add(d.Body, "")
	return v
}

func (v *vector) add(text, label string) {
	for t := range tokens(text) {
		places, known := v.places[t.word]
		if !known {
			if v.bytes += len(t.word) + 16; v.bytes > maxVector {
				v.exact = false
				continue
			}
		}
		switch {
		case v.next > maxPosition || len(places) >= maxPlaces || v.bytes > maxVector:
			v.exact = false
			v.places[t.word] = places
		default:
			v.places[t.word] = append(places, strconv.Itoa(v.next)+label)
			v.bytes += 2
		}
		v.next++
	}
}

// String spells the vector for the database. Words have no quotes, so that those
// around them need no care.
func (v *vector) String(scope string) string {
	var b strings.Builder
	for _, word := range slices.Sorted(maps.Keys(v.places)) {
		b.WriteString("'" + scope + word + "'")
		if places := v.places[word]; len(places) > 0 {
			b.WriteString(":" + strings.Join(places, ","))
		}
		b.WriteByte(' ')
	}
	return b.String()
}
