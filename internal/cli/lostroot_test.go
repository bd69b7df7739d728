package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// withoutAState says of each verb that the scripts about lost states leave out why it cannot
// meet one, or where it does.
var withoutAState = map[string]string{
	"init": "makes a store", "demo": "makes a store", "config": "settings", "version": "the program", "completion": "the program",
	"help": "the program", "connect": "settings of agents", "disconnect": "settings of agents", "keys": "keys", "tokens": "tokens",
	"audit": "the audit log", "fleet": "its own verbs", "migrate": "formats of rows", "blob": "takes ids of blobs, not conversations",
	"follow": "agents of a server", "snapshot": "agents", "import": "other stores",
	"flush": "sends blobs, whatever they hold", "resume": "records of agents", "purge": "searches what is stored",
	"try": "copies files, whatever was said", "adopt": "takes files, whatever was said",
	"ask":   "TestAskTheAgentOfAServer tries it",
	"serve": "TestLostRootInEveryCall of package server tries it",
}

// Every verb is tried with a conversation whose state is lost.
func TestEveryVerbMeetsALostState(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/lostroot*.txtar")
	if err != nil || len(scripts) != 3 {
		t.Fatalf("scripts %q, %v", scripts, err)
	}
	tried := make(map[string]bool)
	verb := regexp.MustCompile(`(?m)^(?:! |code \d+ )?stet (?:--store \S+ |-C \S+ )*([a-z]+)`)
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range verb.FindAllStringSubmatch(string(text), -1) {
			tried[m[1]] = true
		}
	}
	for _, cmd := range new(app).root().Commands() {
		if _, exempt := withoutAState[cmd.Name()]; !cmd.Hidden && tried[cmd.Name()] == exempt {
			t.Errorf("%s: tried %t, and its reason not to be is given: %t", cmd.Name(), tried[cmd.Name()], exempt)
		}
	}
}
