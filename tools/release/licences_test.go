package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLicences fails for a dependency whose licence is not permitted yet, or if NOTICE does not
// match the released program.
func TestLicences(t *testing.T) {
	root := filepath.Join("..", "..")
	released, err := contained(t.Context(), root, releaseTags)
	if err != nil {
		t.Fatal(err)
	}
	if found := forbidden(released); len(found) > 0 {
		t.Errorf("licences that are not on the list: %q", found)
	}
	committed, err := os.ReadFile(filepath.Join(root, "NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, notice(released)) {
		t.Error("NOTICE is out of date: make notice")
	}
	whole, err := contained(t.Context(), root, "")
	if err != nil {
		t.Fatal(err)
	}
	if found := forbidden(whole); len(found) > 0 {
		t.Errorf("licences of the demo that are not on the list: %q", found)
	}
	for _, w := range released {
		if slices.Contains(demoModules, w.name) {
			t.Errorf("the released program contains %s, which only the demo needs", w.name)
		}
	}
	if n := len(whole) - len(released); n < len(demoModules) {
		t.Errorf("the demo adds %d modules only: is it part of a plain build?", n)
	}
}

func TestForbiddenLicenceIsFound(t *testing.T) {
	folder := t.TempDir()
	text := "This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0. If a copy of the MPL was not " +
		"distributed with this file, You can obtain one at https://mozilla.org/MPL/2.0/.\n"
	if err := os.WriteFile(filepath.Join(folder, "LICENSE"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := work{name: "example.org/a", version: "v1.0.0"}
	if err := w.read(folder); err != nil {
		t.Fatal(err)
	}
	if found := forbidden([]work{w}); !slices.Equal(found, []string{"example.org/a: MPL-2.0"}) {
		t.Errorf("found %q", found)
	}
	if err := os.WriteFile(filepath.Join(folder, "LICENSE"), []byte("ask us first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&work{name: "example.org/b"}).read(folder); err == nil || !strings.Contains(err.Error(), "no licence that is known") {
		t.Errorf("an unknown licence: %v", err)
	}
}
