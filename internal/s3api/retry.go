package s3api

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"
)

// passingCodes are those of failures that pass. Some say that a body arrived changed or cut.
var passingCodes = []string{
	"BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "IncompleteBody",
	"RequestTimeout", "RequestTimeoutException", "InternalError", "ServiceUnavailable", "SlowDown",
	"Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestThrottledException",
	"TooManyRequestsException", "RequestLimitExceeded", "BandwidthLimitExceeded", "PriorRequestNotComplete",
	"IDPCommunicationError", "InvalidIdentityToken", // of roles for web identities, as AWS advises
}

var passingStatuses = []int{
	http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// passing reports whether a failure may be gone at another attempt.
func passing(err error) bool {
	var answer *Error
	if errors.As(err, &answer) {
		// A good answer that cannot be read, or that names a failure, is one of a service, or
		// of something on the way to it, that is in trouble.
		return answer.Status < 300 || slices.Contains(passingStatuses, answer.Status) || slices.Contains(passingCodes, answer.Code)
	}
	var name *net.DNSError
	if errors.As(err, &name) && name.IsNotFound {
		return false
	}
	var certificate *tls.CertificateVerificationError
	return !errors.As(err, &certificate)
}

// tooSkewed is how wrong a clock must be before a failure is said to come from it. Services
// allow more.
const tooSkewed = 4 * time.Minute

// skewCodes are those that services answer if the time of a signature is not theirs. An
// answer to HEAD has none.
var skewCodes = []string{"RequestTimeTooSkewed", "SignatureDoesNotMatch", "InvalidSignatureException", "AuthFailure", "AccessDeniedException", "RequestExpired", ""}

// correct takes over the clock of a service that refused a request signed at another time
// than its own. It reports whether it did.
func (s *Sender) correct(res *http.Response, err error, signed time.Time) bool {
	var answer *Error
	if !errors.As(err, &answer) || answer.Status != http.StatusForbidden && answer.Status != http.StatusBadRequest || !slices.Contains(skewCodes, answer.Code) {
		return false
	}
	theirs, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil || theirs.Sub(signed).Abs() <= tooSkewed {
		return false
	}
	s.skew.Store(int64(time.Until(theirs)))
	return true
}
