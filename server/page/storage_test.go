package page

import (
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// TestOldReportIsShownWhileTheStoreIsMeasured asks with an old report at hand: the answer
// does not wait for the next one.
func TestOldReportIsShownWhileTheStoreIsMeasured(t *testing.T) {
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Conversations().Create(t.Context(), conversation.Info{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	s := New(db, nil)
	storage := func() *stetv1.StorageResponse {
		t.Helper()
		res, err := s.Storage(t.Context(), &stetv1.StorageRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	first := storage()
	if first.GetMeasuring() || first.GetMeasuredMs() == 0 || first.GetDiskBytes() == 0 {
		t.Errorf("the first answer is %v", first)
	}
	old := *s.storage.Load()
	old.made = old.made.Add(-24 * time.Hour)
	s.storage.Store(&old)
	m := s.measure(t.Context()) // so that its end can be waited for
	if got := storage(); got.GetMeasuredMs() == old.made.UnixMilli() && !got.GetMeasuring() {
		t.Errorf("the answer does not say that it is old: %v", got)
	}
	<-m.done
	if m.err != nil {
		t.Fatal(m.err)
	}
	if got := storage(); got.GetMeasuring() || got.GetMeasuredMs() < first.GetMeasuredMs() {
		t.Errorf("after the measurement the answer is %v", got)
	}
}
