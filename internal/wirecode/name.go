package wirecode

import (
	"net/http"

	"github.com/stet-dev/stet/fault"
)

// Headers that name an error more precisely than its code. With Connect's and gRPC's
// streams they are trailers.
const (
	// ReasonHeader has the reasons of an error, the most serious one first.
	ReasonHeader = "Stet-Error"
	// ClassHeader has its class.
	ClassHeader = "Stet-Error-Class"
)

// Name adds the headers for err. An error without a reason gets none.
func Name(to http.Header, err error) {
	reasons := fault.Reasons(err)
	for _, reason := range reasons {
		to.Add(ReasonHeader, reason)
	}
	if len(reasons) > 0 {
		to.Set(ClassHeader, fault.Declared(err).String())
	}
}
