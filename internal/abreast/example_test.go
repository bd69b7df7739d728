package abreast_test

import (
	"fmt"
	"strconv"

	"github.com/stet-dev/stet/internal/abreast"
)

func Example() {
	numbers, errs := abreast.Each([]string{"1", "two", "3"}, 2, strconv.Atoi)
	for i, n := range numbers {
		fmt.Println(n, errs[i])
	}
	// Output:
	// 1 <nil>
	// 0 strconv.Atoi: parsing "two": invalid syntax
	// 3 <nil>
}
