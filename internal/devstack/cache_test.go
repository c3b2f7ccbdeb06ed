package devstack

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func fillWith(text string) func(string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o600) }
}

func TestCachedFillsOnce(t *testing.T) {
	root := filepath.Join(t.TempDir(), "made", "on", "the", "way")
	for _, text := range []string{"first", "second"} {
		dir, err := cached(root, "thing", fillWith(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != "first" {
			t.Errorf("got %q, %v, want the first filling", got, err)
		}
	}
}

func TestCachedLeavesNothingHalfFilled(t *testing.T) {
	root, broken := t.TempDir(), errors.New("line went dead")
	_, err := cached(root, "thing", func(dir string) error { return errors.Join(fillWith("half")(dir), broken) })
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the reason", err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestCachedFilledByManyAtOnce(t *testing.T) {
	root := t.TempDir()
	var fills atomic.Int32
	var all, done sync.WaitGroup
	const callers = 4
	all.Add(callers)
	for range callers {
		done.Go(func() {
			dir, err := cached(root, "thing", func(dir string) error {
				fills.Add(1)
				all.Done()
				all.Wait()
				return fillWith("whole")(dir)
			})
			if got, readErr := os.ReadFile(filepath.Join(dir, "file")); err != nil || readErr != nil || string(got) != "whole" {
				t.Errorf("got %q, %v, %v", got, err, readErr)
			}
		})
	}
	done.Wait()
	if left, err := os.ReadDir(root); err != nil || len(left) != 1 {
		t.Errorf("after %d fillings: %v, %v, want one folder", fills.Load(), left, err)
	}
}

func TestFreePortsDiffer(t *testing.T) {
	ports, err := freePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range ports {
		if port < firstPort || port >= lastPort || seen[port] {
			t.Errorf("port %d: out of range or given twice", port)
		}
		seen[port] = true
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var kept tail
	if got := kept.String(); got != "(no output)" {
		t.Errorf("empty: got %q", got)
	}
	for range 3 {
		if _, err := kept.Write([]byte(strings.Repeat("a", tailBytes/2))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := kept.Write([]byte("the end\n")); err != nil {
		t.Fatal(err)
	}
	if got := kept.String(); !strings.HasSuffix(got, "the end") || len(got) > tailBytes {
		t.Errorf("got %d bytes, ending in %q", len(got), got[len(got)-10:])
	}
}
