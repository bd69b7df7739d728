package bisect_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/bisect"
)

func Example() {
	states := []string{"v1", "v2", "v3", "v4", "v5", "v6"}
	found, err := bisect.Run(context.Background(), bisect.Options{Keys: states},
		func(_ context.Context, i int) (bisect.Verdict, error) {
			if states[i] >= "v4" {
				return bisect.Bad, nil
			}
			return bisect.Good, nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s works, %s does not\n", states[found.Good], states[found.Bad])
	// Output: v3 works, v4 does not
}
