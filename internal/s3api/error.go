package s3api

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Error is an answer that says why a request failed, or one that cannot be read.
type Error struct {
	Status int
	// Code and Message are those of the service. They are empty if it sent none.
	Code, Message string
	RequestID     string
	// Region is the one of the bucket, if the answer says that it is another one.
	Region string
	// Err says why the answer cannot be read.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	text := cmp.Or(e.Code, http.StatusText(e.Status), "no reason")
	switch {
	case e.Err != nil:
		text = "cannot read the answer: " + e.Err.Error()
	case e.Message != "":
		text += ": " + e.Message
	}
	text += fmt.Sprintf(" (status %d, request %s)", e.Status, cmp.Or(e.RequestID, "unknown"))
	if e.Region != "" {
		text += "; the bucket is in region " + e.Region
	}
	return text
}

// Unwrap returns why the answer cannot be read.
func (e *Error) Unwrap() error { return e.Err }

// HasCode reports whether an error is an answer with one of some codes.
func HasCode(err error, codes ...string) bool {
	var answer *Error
	if errors.As(err, &answer) {
		for _, code := range codes {
			if answer.Code == code {
				return true
			}
		}
	}
	return false
}

// refusal reads an answer that is not a good one.
func refusal(res *http.Response) *Error {
	body, err := readBody(res)
	e := &Error{Status: res.StatusCode, RequestID: requestID(res)}
	root, _ := parseXML(body) // not every failure has a body that can be read
	e.fill(root)
	if e.Code == "" && err != nil {
		e.Err = err
	}
	// The same header comes with good answers, and with others that name no failure of it.
	if res.StatusCode == http.StatusMovedPermanently || res.StatusCode == http.StatusBadRequest {
		e.Region = cmp.Or(res.Header.Get("X-Amz-Bucket-Region"), root.find("Region"))
	}
	return e
}

// fill takes code and message from a document whose root is Error, or has one in it as
// those of other services have.
func (e *Error) fill(root *element) {
	if inner := root.child("Error"); inner != nil {
		e.RequestID = cmp.Or(e.RequestID, root.find("RequestId"))
		root = inner
	}
	e.Code, e.Message = root.find("Code"), root.find("Message")
	e.RequestID = cmp.Or(e.RequestID, root.find("RequestId"))
}

func requestID(res *http.Response) string {
	return cmp.Or(res.Header.Get("X-Amz-Request-Id"), res.Header.Get("X-Amzn-Requestid"))
}

// unreadable returns the error for a good answer whose body says nothing of use.
func unreadable(res *http.Response, err error) *Error {
	return &Error{Status: res.StatusCode, RequestID: requestID(res), Err: err}
}

// maxBody is more than any answer of S3 has that is not an object.
const maxBody = 32 << 20

func readBody(res *http.Response) ([]byte, error) {
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errors.New("it is too large")
	}
	return body, err
}

// unsent returns the error of a request without its address.
func unsent(err error) error {
	var sent *url.Error
	if errors.As(err, &sent) {
		return sent.Err
	}
	return err
}
