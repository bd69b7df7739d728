package s3api_test

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/s3api"
)

// answers serves one answer.
func answers(t *testing.T, status int, header http.Header, body string) *s3api.Client {
	t.Helper()
	return served(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func TestListings(t *testing.T) {
	ctx := t.Context()
	got, err := answers(t, 200, nil, listing).List(ctx, s3api.Query{})
	want := &s3api.Listing{Entries: []s3api.Entry{{Key: " a&b ", Size: 7, Time: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	got, err = answers(t, 200, nil, `<ListBucketResult xmlns="x"><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>`).List(ctx, s3api.Query{})
	if want := (&s3api.Listing{More: true, Token: "t"}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{
		"<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents></ListBucketResult>",
		"<ListBucketResult><Contents><Key>a</Key><LastModified>today</LastModified></Contents></ListBucketResult>",
	} {
		if got, err := answers(t, 200, nil, bad).List(ctx, s3api.Query{}); err == nil {
			t.Errorf("%s: got %v", bad, got)
		}
	}
	uploads, err := answers(t, 200, nil, `<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker><NextUploadIdMarker>i</NextUploadIdMarker>
		<Upload><Key>a</Key><UploadId>1</UploadId><Initiated>2026-01-02T03:04:05Z</Initiated></Upload><Upload><Key>b</Key><UploadId>2</UploadId><Initiated>?</Initiated></Upload></ListMultipartUploadsResult>`).ListUploads(ctx, "", "", "")
	wantUploads := &s3api.Uploads{More: true, KeyMarker: "k", IDMarker: "i", Entries: []s3api.Upload{{"a", "1", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, {"b", "2", time.Time{}}}}
	if err != nil || !reflect.DeepEqual(uploads, wantUploads) {
		t.Errorf("got %+v, %v, want %+v", uploads, err, wantUploads)
	}
}

func TestUploads(t *testing.T) {
	ctx := t.Context()
	id, err := answers(t, 200, nil, "<InitiateMultipartUploadResult><UploadId>i</UploadId></InitiateMultipartUploadResult>").CreateUpload(ctx, "a", true)
	if err != nil || id != "i" {
		t.Errorf("create: got %q, %v", id, err)
	}
	if id, err := answers(t, 200, nil, "<InitiateMultipartUploadResult></InitiateMultipartUploadResult>").CreateUpload(ctx, "a", true); err == nil {
		t.Errorf("create without an id: got %q", id)
	}
	tag, sum, err := answers(t, 200, http.Header{"Etag": {`"t"`}, "X-Amz-Checksum-Crc32c": {"AAAAAA=="}}, "").PutPart(ctx, "a", "i", 1, s3api.Content{Data: []byte("x")})
	if err != nil || tag != `"t"` || sum != "AAAAAA==" {
		t.Errorf("part: got %q, %q, %v", tag, sum, err)
	}
	sum, kind, err := answers(t, 200, nil, "\n \n<CompleteMultipartUploadResult><ChecksumCRC32C>AAAAAA==</ChecksumCRC32C><ChecksumType>COMPOSITE</ChecksumType></CompleteMultipartUploadResult>").CompleteUpload(ctx, "a", "i", nil, "")
	if err != nil || sum != "AAAAAA==" || kind != s3api.Composite {
		t.Errorf("complete: got %q, %q, %v", sum, kind, err)
	}
	// The service began a good answer before it failed.
	_, _, err = answers(t, 200, nil, "<Error><Code>NoSuchUpload</Code><Message>gone</Message></Error>").CompleteUpload(ctx, "a", "i", nil, "")
	if !s3api.HasCode(err, "Other", "NoSuchUpload") || s3api.HasCode(err, "gone") || s3api.HasCode(nil, "") {
		t.Errorf("complete: got %v", err)
	}
}

func TestDeleteAll(t *testing.T) {
	ctx := t.Context()
	got, err := answers(t, 200, nil, "<DeleteResult><Error><Key>b</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>").DeleteAll(ctx, []string{"a", "b"})
	if err != nil || len(got) != 1 || got[0] != (s3api.Undeleted{Key: "b", Code: "AccessDenied", Message: "no"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := answers(t, 200, nil, "<html></html>").DeleteAll(ctx, []string{"a", "b"}); err == nil {
		t.Error("a page instead of a result: no error")
	}
}

func TestGet(t *testing.T) {
	o, err := answers(t, 206, http.Header{"Content-Range": {"bytes 0-2/9"}, "X-Amz-Meta-X": {"y"}}, "abc").Get(t.Context(), "a", "bytes=0-2")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(o.Body)
	if err != nil || string(body) != "abc" || o.Length != 3 || o.Header.Get("x-amz-meta-x") != "y" || o.Body.Close() != nil {
		t.Errorf("got %q, %v, %+v", body, err, o)
	}
}

// TestOtherRegion has services say in their ways that the bucket is somewhere else.
func TestOtherRegion(t *testing.T) {
	for _, c := range []struct {
		status int
		header http.Header
		body   string
		want   string
	}{
		{301, http.Header{"X-Amz-Bucket-Region": {"eu-west-1"}}, "", "eu-west-1"},
		{301, http.Header{"X-Amz-Bucket-Region": {"eu-west-1"}}, "<Error><Code>PermanentRedirect</Code></Error>", "eu-west-1"},
		{400, nil, "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>", "eu-west-1"},
		{403, http.Header{"X-Amz-Bucket-Region": {"us-east-1"}}, "", ""},
	} {
		_, err := answers(t, c.status, c.header, c.body).List(t.Context(), s3api.Query{})
		var answer *s3api.Error
		if !errors.As(err, &answer) || answer.Region != c.want || answer.Status != c.status {
			t.Errorf("%d %s: got %v, want %q", c.status, c.body, err, c.want)
		}
	}
	// Other services of Amazon have the error in another document.
	_, err := answers(t, 403, nil, "<ErrorResponse><Error><Code>C</Code><Message>m</Message></Error><RequestId>r</RequestId></ErrorResponse>").List(t.Context(), s3api.Query{})
	if err == nil || err.Error() != "C: m (status 403, request r)" {
		t.Errorf("got %v", err)
	}
}
