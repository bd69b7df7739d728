package linediff_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/workspace"
)

func Example() {
	ctx := context.Background()
	before, after := blob.New([]byte("one\ntwo\n")), blob.New([]byte("one\n2\n"))
	blobs := memblob.New()
	if err := blobs.Put(ctx, before, after); err != nil {
		panic(err)
	}
	file, err := linediff.Compare(ctx, blobs, workspace.Change{
		Path:   "numbers.txt",
		Before: &workspace.Entry{Kind: workspace.File, ID: before.ID, Size: int64(len(before.Data))},
		After:  &workspace.Entry{Kind: workspace.File, ID: after.ID, Size: int64(len(after.Data))},
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s +%d -%d\n%s", file.Path, file.Added, file.Removed, file.Unified())
	// Output:
	// numbers.txt +1 -1
	// @@ -1,2 +1,2 @@
	//  one
	// -two
	// +2
}
