package page_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/server/page"
)

func ExampleFile() {
	fmt.Println(page.File(context.Background(), "shop.go", "package shop // <b>"))
	// Output: <span class="k">package</span> shop <span class="c">// &lt;b&gt;</span>
}
