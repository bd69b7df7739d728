package cli

import (
	"strings"
	"testing"

	"github.com/stet-dev/stet/workspace"
)

func TestTraitsInWords(t *testing.T) {
	all := workspace.Traits{Swaps: true, Links: true, Modes: true, SyncsDirs: true}
	if got := traitsText(all); got != "supports everything that a rewind needs" {
		t.Errorf("all: %q", got)
	}
	got := traitsText(workspace.Traits{FoldsCase: true, Normalises: true})
	for _, want := range []string{"one name", "accents", "permission bits", "symbolic links", "trade places", "synced"} {
		if !strings.Contains(got, want) {
			t.Errorf("none: %q lacks %q", got, want)
		}
	}
}

func TestNetworksInWords(t *testing.T) {
	if got := networkText(""); got != "" {
		t.Errorf("a local store: %q", got)
	}
	if got := networkText("NFS"); !strings.Contains(got, "on NFS: only one machine") {
		t.Errorf("NFS: %q", got)
	}
}
