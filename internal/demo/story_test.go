package demo

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Every story of the program can be read, and says what a player needs.
func TestStories(t *testing.T) {
	for name, s := range library() {
		if s.Title == "" || s.Agent == "" || s.Place == "" || len(s.scenes) == 0 {
			t.Errorf("%s: %+v", name, s)
		}
		files := map[string]bool{}
		for path := range s.start {
			files[path] = true
		}
		messages := map[string]bool{}
		for i, scene := range s.scenes {
			if scene.ask == "" || scene.say == "" || scene.message == "" || messages[scene.message] && name != "live" {
				t.Errorf("%s, scene %d: %+v", name, i+1, scene)
			}
			messages[scene.message] = true
			for path, text := range scene.files {
				if text == "" && !files[path] {
					t.Errorf("%s, scene %d removes %s, which is not there", name, i+1, path)
				}
				files[path] = text != ""
			}
			if scene.back >= uint64(i+1) {
				t.Errorf("%s, scene %d goes back to %d", name, i+1, scene.back)
			}
		}
		for pin, turn := range s.pins {
			if turn < 1 || turn > len(s.scenes) {
				t.Errorf("%s: pin %s is after turn %d", name, pin, turn)
			}
		}
	}
	if s := Shop(); s.Agent != "claude-code" || s.pins != nil || s.fork != nil || len(s.start) == 0 || len(s.end) == 0 {
		t.Errorf("the story of the shop: %+v", s)
	}
	for path, text := range library()["shop"].start {
		if library()["prices"].start[path] != text {
			t.Errorf("a story does not start as the one that it names: %s", path)
		}
	}
}

// The live agent never runs out of turns, and each has its own number.
func TestLiveScenes(t *testing.T) {
	n := len(library()["live"].scenes)
	for _, turn := range []int{1, n, n + 1, 1999} {
		s := liveScene(turn)
		text := s.message + strings.Join(slices.Collect(maps.Values(s.files)), "")
		if s.ask != library()["live"].scenes[(turn-1)%n].ask || strings.Contains(text, "{n}") || len(s.files) != 1 {
			t.Errorf("turn %d: %+v", turn, s)
		}
	}
	if liveScene(1).message == liveScene(n+1).message {
		t.Error("two turns have one message id")
	}
}

func TestParse(t *testing.T) {
	s, err := parse("title: a story\nago: 90m\npin: 1 first\n" +
		"-- start/a --\nold\n-- 1/yours/b --\nmine\n-- 1/scene --\nask: do: it\nrun: x\nrun: y\nremove: a\nback: 0\n" +
		"-- 1/out/2 --\nprinted\n-- 1/say --\none\n\ntwo\n-- 1/files/c --\nnew\n-- end/a --\nend\n")
	if err != nil {
		t.Fatal(err)
	}
	one := s.scenes[0]
	if s.Title != "a story" || s.Ago.Minutes() != 90 || s.pins["first"] != 1 || s.start["a"] != "old\n" || s.end["a"] != "end\n" {
		t.Errorf("story %+v", s)
	}
	if one.ask != "do: it" || !slices.Equal(one.runs, []run{{"x", ""}, {"y", "printed\n"}}) || one.say != "one\n\ntwo" || one.yours["b"] != "mine\n" {
		t.Errorf("scene %+v", one)
	}
	if text, ok := one.files["a"]; !ok || text != "" || one.files["c"] != "new\n" {
		t.Errorf("files %q", one.files)
	}
	for _, bad := range []string{
		"colour: red\n", "ago: soon\n", "-- 2/scene --\n", "-- x/say --\n", "-- 1/song --\n",
		"-- 1/scene --\nminutes: few\n", "-- 1/out/1 --\nx\n", "-- 1/failure --\nx\n", "-- 1/helper --\nname: x\n", "pin: one first\n",
	} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
