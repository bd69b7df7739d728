package fault_test

import (
	"errors"
	"fmt"

	"github.com/stet-dev/stet/fault"
)

var (
	errNoPage = fault.Named(fault.NotFound, "example-no-page", "page not found")
	errTorn   = fault.New(fault.Damaged, "page is torn")
)

func Example() {
	err := fmt.Errorf("print chapter 2: %w", errNoPage)
	fmt.Println(err)
	fmt.Println(fault.Of(err), errors.Is(err, errNoPage), fault.Reasons(err))

	// The more serious class counts.
	fmt.Println(fault.Of(errors.Join(err, errTorn)))

	// A client makes the sentinel again from what the server sent.
	sent := fault.Named(fault.Parse("not-found"), "example-no-page", "the server has no such page")
	fmt.Println(errors.Is(sent, errNoPage))
	// Output:
	// print chapter 2: page not found
	// not-found true [example-no-page]
	// damaged
	// true
}
