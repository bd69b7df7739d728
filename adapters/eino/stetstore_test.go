package stetstore_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/adapters/eino"
)

// trip is the state of the graph.
type trip struct{ Visited []string }

func init() { schema.RegisterName[*trip]("stet_test_trip") }

// compiled returns a graph of three cities that stops before the last one.
func compiled(ctx context.Context, store compose.CheckPointStore, log *[]string) (compose.Runnable[string, string], error) {
	g := compose.NewGraph[string, string](compose.WithGenLocalState(func(context.Context) *trip { return &trip{} }))
	from := compose.START
	for _, city := range []string{"Oslo", "Bergen", "Tromsø"} {
		visit := compose.InvokableLambda(func(ctx context.Context, in string) (string, error) {
			*log = append(*log, city)
			err := compose.ProcessState(ctx, func(_ context.Context, t *trip) error {
				t.Visited = append(t.Visited, city)
				in += " " + fmt.Sprint(len(t.Visited)) + city
				return nil
			})
			return in, err
		})
		if err := g.AddLambdaNode(city, visit); err != nil {
			return nil, err
		}
		if err := g.AddEdge(from, city); err != nil {
			return nil, err
		}
		from = city
	}
	if err := g.AddEdge(from, compose.END); err != nil {
		return nil, err
	}
	return g.Compile(ctx, compose.WithCheckPointStore(store), compose.WithInterruptBeforeNodes([]string{"Tromsø"}))
}

// A graph that was interrupted continues in another process: tasks that had ended are not
// repeated, and the state is what it was.
func TestInterruptAndResume(t *testing.T) {
	dir := t.TempDir()
	process := func(run func(*stetstore.Store, *[]string)) []string {
		db, err := stet.Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var visited []string
		run(stetstore.New(db.Documents(), "graphs"), &visited)
		return visited
	}
	first := process(func(s *stetstore.Store, visited *[]string) {
		graph, err := compiled(t.Context(), s, visited)
		if err != nil {
			t.Fatal(err)
		}
		_, err = graph.Invoke(t.Context(), "trip", compose.WithCheckPointID("trip-7"))
		if _, ok := compose.ExtractInterruptInfo(err); !ok {
			t.Fatalf("the graph was not interrupted: %v", err)
		}
	})
	second := process(func(s *stetstore.Store, visited *[]string) {
		graph, err := compiled(t.Context(), s, visited)
		if err != nil {
			t.Fatal(err)
		}
		out, err := graph.Invoke(t.Context(), "", compose.WithCheckPointID("trip-7"))
		if err != nil || out != "trip 1Oslo 2Bergen 3Tromsø" {
			t.Errorf("%q, %v", out, err)
		}
		if err := s.Delete(t.Context(), "trip-7"); err != nil {
			t.Error(err)
		}
		if _, ok, err := s.Get(t.Context(), "trip-7"); ok || err != nil {
			t.Errorf("a deleted checkpoint: %v, %v", ok, err)
		}
	})
	if got := strings.Join(first, " ") + "|" + strings.Join(second, " "); got != "Oslo Bergen|Tromsø" {
		t.Errorf("visited %s", got)
	}
}

func TestStore(t *testing.T) {
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := stetstore.New(db.Documents(), "graphs")
	if data, ok, err := s.Get(t.Context(), "none"); data != nil || ok || err != nil {
		t.Errorf("a checkpoint that does not exist: %q, %v, %v", data, ok, err)
	}
	for _, content := range []string{"", "small", strings.Repeat("large", 100_000)} {
		if err := s.Set(t.Context(), "a", []byte(content)); err != nil {
			t.Fatal(err)
		}
		if data, ok, err := s.Get(t.Context(), "a"); string(data) != content || !ok || err != nil {
			t.Errorf("%d bytes: %d, %v, %v", len(content), len(data), ok, err)
		}
	}
	if err := s.Set(t.Context(), "a\nb", nil); err == nil || !strings.Contains(err.Error(), "control character") {
		t.Errorf("a bad id: %v", err)
	}
}

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "graphs-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := stet.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	var visited []string
	graph, err := compiled(ctx, stetstore.New(db.Documents(), "graphs"), &visited)
	if err != nil {
		log.Fatal(err)
	}
	_, err = graph.Invoke(ctx, "trip", compose.WithCheckPointID("trip-7"))
	_, interrupted := compose.ExtractInterruptInfo(err)
	fmt.Println("interrupted:", interrupted)
	out, err := graph.Invoke(ctx, "", compose.WithCheckPointID("trip-7"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out)
	// Output:
	// interrupted: true
	// trip 1Oslo 2Bergen 3Tromsø
}
