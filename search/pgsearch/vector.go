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

// Limits of the database's vectors: positions, positions per word, and the total
// bytes of words and positions, with some left for alignment.
const (
	maxPosition = 16382
	maxPlaces   = 255
	maxVector   = 900 << 10
)

// pathLabel marks the words of a path.
const pathLabel = "A"

// scope is the prefix of every word of a tenant, so that the index entries of tenants
// are separate. Two tenants may share one: rows distinguish them.
func scope(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:])[:6]) + "-"
}

// vector collects the words of a message with their places. Words of the path come
// first, and none of them is adjacent to one of the body.
type vector struct {
	places map[string][]string
	next   int
	bytes  int
	// exact means that every word has all its places, so that phrases can be looked
	// up; otherwise only words can.
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

// String formats the vector for the database. Words contain no quotes, so they need
// no escaping.
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
