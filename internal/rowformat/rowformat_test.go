package rowformat_test

import (
	"errors"
	"testing"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

func TestFormats(t *testing.T) {
	row := func(format uint32) kv.Row {
		set, err := rowformat.Set("key", &stetv1.FrameWriteRecord{Format: format, Channel: "c"})
		if err != nil {
			t.Fatal(err)
		}
		return kv.Row{Key: set.Key, Value: set.Value}
	}
	for name, c := range map[string]struct {
		row  kv.Row
		want error
	}{
		"known":     {row(2), nil},
		"earlier":   {row(1), nil},
		"newer":     {row(3), kv.ErrNewerFormat},
		"none":      {row(0), kv.ErrCorrupt},
		"no bytes":  {kv.Row{Key: "key"}, kv.ErrCorrupt},
		"not a row": {kv.Row{Key: "key", Value: []byte("\xff")}, kv.ErrCorrupt},
	} {
		rec := new(stetv1.FrameWriteRecord)
		err := rowformat.Decode(c.row, rec, 2)
		if !errors.Is(err, c.want) || c.want == nil && (err != nil || rec.GetChannel() != "c") {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
