package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// permitted are the licences that only require their text in the release. The names are those of
// package licensecheck. GooglePatentsFile is the patent grant next to Go's licence.
var permitted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "GooglePatentsFile", "ISC", "MIT", "Zlib"}

// publicDomain are modules of the demo whose licence file puts them in the public domain. Package
// licensecheck does not recognize this text.
var publicDomain = []string{"github.com/xi2/xz"}

// work is third-party code in a binary: a module, Go itself, or a folder of this repository. The
// field licences has the names of its licences.
type work struct {
	name, version string
	licences      []string
	texts         []legalText
}

type legalText struct{ file, text string }

// notice returns the content of the file NOTICE: every work, its licences, and their texts. It
// prints a text that several works share only once.
func notice(works []work) []byte {
	var out bytes.Buffer
	out.WriteString("projector contains software of others. This file names it and has its licences.\n" +
		"`make notice` writes it; a test fails when it is out of date.\n\n")
	for _, w := range works {
		fmt.Fprintf(&out, "%s %s: %s\n", w.name, w.version, strings.Join(w.licences, ", "))
	}
	type shared struct {
		of   []string
		text string
	}
	var order [][sha256.Size]byte
	texts := map[[sha256.Size]byte]*shared{}
	for _, w := range works {
		for _, t := range w.texts {
			sum := sha256.Sum256([]byte(t.text))
			if texts[sum] == nil {
				order, texts[sum] = append(order, sum), &shared{text: t.text}
			}
			texts[sum].of = append(texts[sum].of, w.name+" "+t.file)
		}
	}
	for _, sum := range order {
		fmt.Fprintf(&out, "\n==== %s\n\n%s\n", strings.Join(texts[sum].of, ", "), texts[sum].text)
	}
	return out.Bytes()
}

// contained returns the works in the released binaries of all platforms, by name. tags are the
// build tags.
func contained(ctx context.Context, root, tags string) ([]work, error) {
	modules, err := linked(ctx, root, tags)
	if err != nil {
		return nil, err
	}
	folders, err := moduleFolders(ctx, root, modules)
	if err != nil {
		return nil, err
	}
	goRoot, err := output(ctx, root, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	vendored, err := readVendored(root)
	if err != nil {
		return nil, err
	}
	works := []work{}
	add := func(name, version, folder string) error {
		w := work{name: name, version: version}
		if err := w.read(folder); err != nil {
			return err
		}
		works = append(works, w)
		return nil
	}
	err = add("Go", "(the standard library)", strings.TrimSpace(goRoot))
	for _, v := range vendored {
		err = cmp.Or(err, add(v.name, v.version, filepath.Join(root, v.folder)))
	}
	for _, m := range modules {
		err = cmp.Or(err, add(m.path, m.version, folders[m.path+"@"+m.version]))
	}
	return works, err
}

// legal matches the names of files that must be shipped with the code.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([._-].*)?$`)

// read reads the legal files in the work's folder. It returns an error if the folder has none, or
// if a licence file is not recognized.
func (w *work) read(folder string) error {
	entries, err := os.ReadDir(folder) // in sorted order
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, entry := range entries {
		if entry.IsDir() || !legal.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name())) //nolint:gosec // G304: a folder of a module
		if err != nil {
			return err
		}
		w.texts = append(w.texts, legalText{entry.Name(), string(bytes.TrimSpace(content))})
		for _, match := range licensecheck.Scan(content).Match {
			names[match.ID] = true
		}
	}
	if slices.Contains(publicDomain, w.name) {
		return nil
	}
	if w.licences = slices.Sorted(maps.Keys(names)); len(w.licences) == 0 {
		return fmt.Errorf("%s has no licence that is known, in %s", w.name, folder)
	}
	return nil
}

// forbidden returns the works with a licence that is not permitted.
func forbidden(works []work) []string {
	var found []string
	for _, w := range works {
		for _, name := range w.licences {
			if !slices.Contains(permitted, name) {
				found = append(found, w.name+": "+name)
			}
		}
	}
	return found
}

// linked returns the modules that the program is built from, on all platforms.
func linked(ctx context.Context, root, tags string) ([]module, error) {
	found := map[string]module{}
	for _, p := range platforms {
		listed, err := output(ctx, root, []string{"GOOS=" + p.os, "GOARCH=" + p.arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly"},
			"go", "list", "-deps", "-tags="+tags, "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/projector")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(listed) {
			if path, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				found[path] = module{path: path, version: version}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b module) int { return cmp.Compare(a.path, b.path) }), nil
}

// moduleFolders returns the folders of the unpacked modules, by path@version.
func moduleFolders(ctx context.Context, root string, modules []module) (map[string]string, error) {
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.path+"@"+m.version)
	}
	listed, err := output(ctx, root, nil, "go", args...)
	if err != nil {
		return nil, err
	}
	folders := map[string]string{}
	decoder := json.NewDecoder(strings.NewReader(listed))
	for {
		var m struct{ Path, Version, Dir string }
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return folders, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		folders[m.Path+"@"+m.Version] = m.Dir
	}
}
