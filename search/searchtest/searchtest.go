// Package searchtest checks that every search.Searcher returns the same results.
//
//	func TestIndex(t *testing.T) {
//		searchtest.Run(t, func(t testing.TB, c *conversation.Store, b blob.Store, r kv.Store) search.Searcher { … })
//	}
//
// Failures of an engine are left to its own tests.
package searchtest

import (
	"slices"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/search"
)

// Open returns an empty index over a store.
type Open func(t testing.TB, conversations *conversation.Store, blobs blob.Store, rows kv.Store) search.Searcher

// Run opens an index for every case and reports each broken promise.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, Open){
		"queries":                               testQueries,
		"hits":                                  testHits,
		"pages":                                 testPages,
		"update-follows-saves":                  testUpdateFollowsSaves,
		"subagents-and-summaries":               testSubagentsAndSummaries,
		"damaged-conversations":                 testDamagedConversations,
		"everything-is-found":                   testEverythingIsFound,
		"hostile-texts":                         testHostileTexts,
		"rewound-branches-are-found":            testRewoundBranchesAreFound,
		"a-branch-that-is-removed-is-not-found": testABranchThatIsRemovedIsNotFound,
		"a-lost-branch-costs-nothing-else":      testALostBranchCostsNothingElse,
		"random-changes-are-followed":           testRandomChangesAreFollowed,
		"context-and-close":                     testContextAndClose,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

// dumper is an index that can dump its content, sorted.
type dumper interface {
	Dump(testing.TB) []string
}

// rebuilt checks that an index that followed all changes equals a new one.
func (f *fixture) rebuilt(t testing.TB) {
	t.Helper()
	d, ok := f.index.(dumper)
	if !ok {
		t.Fatalf("%T cannot dump its content", f.index)
	}
	before := d.Dump(t)
	_, err := f.index.Rebuild(t.Context())
	Check(t, err)
	if after := d.Dump(t); !slices.Equal(before, after) {
		t.Errorf("following all changes gave %d messages, a rebuild %d", len(before), len(after))
	}
}
