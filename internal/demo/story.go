package demo

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed stories/*.txtar
var stories embed.FS

// Story is a conversation of a scripted agent.
type Story struct {
	Title, Agent string
	Ago          time.Duration // when it began
	Place        string        // directory of the workspace
	model        string

	start  map[string]string // what is there before
	scenes []scene
	end    map[string]string // what the user does at the end
	pins   map[string]int    // by name: after which turn
	fork   *scene            // a turn of a fork after the first turn
	from   string            // the story whose start this one has
}

// scene is one turn.
type scene struct {
	title   string            // of a fork
	yours   map[string]string // what the user does before it
	ask     string
	message string
	think   string // what the agent thinks first
	sub     *helper
	say     string            // the agent's answer
	files   map[string]string // what the agent writes; empty removes
	runs    []run             // commands that it says it ran
	fails   *run              // a command that it says failed first
	minutes int
	tokens  [3]int64 // read, written, read from a cache
	cost    float64  // in dollars, 0 if the agent does not say it
	back    uint64   // turn to which the user then goes back
}

// run is a command and what it printed.
type run struct{ command, output string }

// helper is a subagent of a scene.
type helper struct {
	id, message, ask, think, say string
	tokens                       [3]int64
	runs                         []run
}

// library has every story by the name of its file. The files are part of the program,
// so that an error in one is a bug, which the tests find.
var library = sync.OnceValue(func() map[string]*Story {
	entries, err := stories.ReadDir("stories")
	if err != nil {
		panic(err)
	}
	all := make(map[string]*Story, len(entries))
	for _, e := range entries {
		data, err := stories.ReadFile("stories/" + e.Name())
		if err != nil {
			panic(err)
		}
		name := strings.TrimSuffix(e.Name(), ".txtar")
		if all[name], err = parse(string(data)); err != nil {
			panic(fmt.Sprintf("story %s: %v", name, err))
		}
	}
	for name, s := range all {
		if s.from == "" {
			continue
		}
		from, ok := all[s.from]
		if !ok {
			panic(fmt.Sprintf("story %s starts as %s, which does not exist", name, s.from))
		}
		start := maps.Clone(from.start)
		maps.Copy(start, s.start)
		s.start = start
	}
	return all
})

// Shop returns the story of 'stet demo'.
func Shop() *Story {
	s := *library()["shop"]
	s.pins, s.fork = nil, nil
	return &s
}

// Stories returns those of a fresh store: two workspaces, several days. Those of one
// workspace come in the order of time.
func Stories() []*Story {
	all := library()
	return []*Story{all["notes"], all["prices"], all["sync"], all["shop"]}
}

// liveScene is the n-th turn of the agent that works while the user looks.
func liveScene(n int) scene {
	scenes := library()["live"].scenes
	s := scenes[(n-1)%len(scenes)]
	number := func(text string) string { return strings.ReplaceAll(text, "{n}", strconv.Itoa(n)) }
	s.message = number(s.message)
	files := make(map[string]string, len(s.files))
	for name, text := range s.files {
		files[name] = number(text)
	}
	s.files = files
	return s
}

// parse reads a story.
func parse(text string) (*Story, error) {
	head, files := split(text)
	s := &Story{start: map[string]string{}, end: map[string]string{}, pins: map[string]int{}}
	for field, value := range fields(head) {
		if err := s.set(field, value); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		if err := s.add(f.name, f.text); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return s, nil
}

func (s *Story) set(field, value string) (err error) {
	switch field {
	case "title":
		s.Title = value
	case "agent":
		s.Agent = value
	case "place":
		s.Place = value
	case "model":
		s.model = value
	case "ago":
		s.Ago, err = time.ParseDuration(value)
	case "start":
		s.from = value
	case "pin":
		turn, name, _ := strings.Cut(value, " ")
		s.pins[name], err = strconv.Atoi(turn)
	default:
		err = fmt.Errorf("unknown field %q", field)
	}
	return err
}

// add takes in a file of a story.
func (s *Story) add(name, text string) error {
	part, rest, _ := strings.Cut(name, "/")
	switch part {
	case "start":
		s.start[rest] = text
		return nil
	case "end":
		s.end[rest] = text
		return nil
	case "fork":
		if s.fork == nil {
			s.fork = &scene{}
		}
		return s.fork.add(rest, text)
	}
	n, err := strconv.Atoi(part)
	if err != nil || n < 1 || n > len(s.scenes)+1 {
		return fmt.Errorf("%q is not the number of the last scene or of the next", part)
	}
	if n > len(s.scenes) {
		s.scenes = append(s.scenes, scene{yours: map[string]string{}, files: map[string]string{}})
	}
	return s.scenes[n-1].add(rest, text)
}

// add takes in a file of a scene.
func (s *scene) add(name, text string) error {
	line := strings.TrimSuffix(text, "\n")
	if path, ok := strings.CutPrefix(name, "files/"); ok {
		s.files[path] = text
		return nil
	}
	if path, ok := strings.CutPrefix(name, "yours/"); ok {
		s.yours[path] = text
		return nil
	}
	if strings.HasPrefix(name, "helper") && s.sub == nil {
		s.sub = &helper{}
	}
	if n, ok := strings.CutPrefix(name, "helper/out/"); ok {
		return printed(s.sub.runs, n, text)
	}
	if n, ok := strings.CutPrefix(name, "out/"); ok {
		return printed(s.runs, n, text)
	}
	switch name {
	case "scene":
		for field, value := range fields(text) {
			if err := s.set(field, value); err != nil {
				return err
			}
		}
	case "think":
		s.think = line
	case "say":
		s.say = line
	case "failure":
		if s.fails == nil {
			return errors.New("no command failed")
		}
		s.fails.output = text
	case "helper":
		for field, value := range fields(text) {
			if err := s.sub.set(field, value); err != nil {
				return err
			}
		}
	case "helper/think":
		s.sub.think = line
	case "helper/say":
		s.sub.say = line
	default:
		return fmt.Errorf("unknown part %q", name)
	}
	return nil
}

func (s *scene) set(field, value string) (err error) {
	switch field {
	case "title":
		s.title = value
	case "ask":
		s.ask = value
	case "message":
		s.message = value
	case "run":
		s.runs = append(s.runs, run{command: value})
	case "fail":
		s.fails = &run{command: value}
	case "remove":
		s.files[value] = ""
	case "minutes":
		s.minutes, err = strconv.Atoi(value)
	case "tokens":
		s.tokens, err = parseTokens(value)
	case "cost":
		s.cost, err = strconv.ParseFloat(value, 64)
	case "back":
		s.back, err = strconv.ParseUint(value, 10, 64)
	default:
		err = fmt.Errorf("unknown field %q", field)
	}
	return err
}

// printed takes in what a command printed, which has a number from 1 on.
func printed(runs []run, number, output string) error {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(runs) {
		return fmt.Errorf("there is no command %q", number)
	}
	runs[n-1].output = output
	return nil
}

// parseTokens reads three numbers.
func parseTokens(value string) (n [3]int64, err error) {
	_, err = fmt.Sscan(value, &n[0], &n[1], &n[2])
	return n, err
}

func (h *helper) set(field, value string) (err error) {
	switch field {
	case "id":
		h.id = value
	case "message":
		h.message = value
	case "ask":
		h.ask = value
	case "tokens":
		h.tokens, err = parseTokens(value)
	case "run":
		h.runs = append(h.runs, run{command: value})
	default:
		return fmt.Errorf("unknown field %q", field)
	}
	return err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
