package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const changelog = "# Changelog\n\n## [Unreleased]\n\n- Later\n\n## [1.2.3] - 2026-01-31\n\n- All of it\n"

func TestVersionToRelease(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	tests := map[string]struct {
		tree tree
		o    options
		want string // a version, or a part of the error
	}{
		"the tag":                            {tree{tags: []string{"v1.2.3"}}, options{}, "v1.2.3"},
		"named":                              {tree{}, options{version: "v1.2.3"}, "v1.2.3"},
		"named, beside a tag":                {tree{tags: []string{"v1.2.4"}}, options{version: "v1.2.3"}, "v1.2.3"},
		"no tag":                             {tree{}, options{}, "has no tag"},
		"two tags":                           {tree{tags: []string{"v1.2.3", "v1.2.4"}}, options{}, "several tags"},
		"no version":                         {tree{}, options{version: "1.2.3"}, "is no version"},
		"no version either":                  {tree{}, options{version: "v1.2"}, "is no version"},
		"a path":                             {tree{}, options{version: "v1.2.3-../../x"}, "is no version"},
		"unknown to the changelog":           {tree{}, options{version: "v1.2.4"}, "CHANGELOG.md"},
		"the begin of one in the changelog":  {tree{}, options{version: "v1.2.30"}, "CHANGELOG.md"},
		"a changed tree":                     {tree{tags: []string{"v1.2.3"}, changed: 2}, options{}, "committed: 2"},
		"a changed tree, named":              {tree{changed: 1}, options{version: "v1.2.3"}, "committed: 1"},
		"a snapshot":                         {tree{commit: commit, changed: 2}, options{snapshot: true}, "v0.0.0-snapshot.0123456789ab"},
		"a snapshot of a tag":                {tree{tags: []string{"v1.2.3"}}, options{snapshot: true}, "v1.2.3"},
		"a snapshot, named":                  {tree{}, options{snapshot: true, version: "v2.0.0-rc.1"}, "v2.0.0-rc.1"},
		"a snapshot with an impossible name": {tree{}, options{snapshot: true, version: "latest"}, "is no version"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := tt.tree.version(&tt.o, changelog)
			if err != nil {
				got = err.Error()
			}
			if (err == nil) != (got == tt.want) || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	const text = changelog + "- [a link](x)\n\n### Fixed\n\n- More\n\n## [1.2.2] - 2026-01-01\n\n## [1.2.1] - 2025-12-01\n- Old\n"
	for heading, want := range map[string]string{
		"1.2.3": "- All of it\n- [a link](x)\n\n### Fixed\n\n- More\n", "Unreleased": "- Later\n", "1.2.1": "- Old\n", // the first part and the last part of the file
		"1.2.2": "", "1.2": "", "2.0.0": "", // an empty part, and missing parts
	} {
		if got, err := notes(text, heading); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", heading, got, err, want)
		}
	}
	for version, want := range map[string]string{"v1.2.3": "- All of it\n", "v9.9.9": "- Later\n"} {
		if _, news, err := (&tree{}).version(&options{snapshot: true, version: version}, changelog); err != nil || news != want {
			t.Errorf("a snapshot of %s: %q, %v", version, news, err)
		}
	}
}

func TestReadTree(t *testing.T) {
	folder := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		env := []string{
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost",
			"GIT_COMMITTER_DATE=2026-01-31T12:00:00+01:00",
		}
		if _, err := output(t.Context(), folder, env, "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() tree {
		t.Helper()
		got, err := readTree(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	git("init", "-q")
	write("a")
	git("add", ".")
	git("commit", "-q", "-m", "a")
	git("tag", "v0.1.0-rc.1")
	git("tag", "nightly")
	if got := read(); len(got.commit) != 40 || got.changed != 0 || !slices.Equal(got.tags, []string{"v0.1.0-rc.1"}) ||
		!got.at.Equal(time.Date(2026, 1, 31, 11, 0, 0, 0, time.UTC)) {
		t.Errorf("got %+v", got)
	}
	write("b") // a new file counts as a change, because it may be compiled into the program
	if got := read(); got.changed != 1 {
		t.Errorf("%d files changed, want 1", got.changed)
	}
	if _, err := readTree(t.Context(), t.TempDir()); err == nil {
		t.Error("a folder without git is read")
	}
}

func TestPackIsTheSameEachTime(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	files := []file{{name: "projector", content: []byte("program"), executable: true}, {name: "LICENSE", content: []byte("text")}}
	packed, err := pack("projector_1.2.3_linux_amd64", at, files)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	again, err := pack("projector_1.2.3_linux_amd64", at.In(time.FixedZone("elsewhere", 3600)), files)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(packed, again) {
		t.Error("the same files make two archives")
	}
	var listed []string
	compressed, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, fmt.Sprintf("%s %o %d:%d %s %s", header.Name, header.Mode, header.Uid, header.Gid,
			header.ModTime.UTC().Format(time.RFC3339), content))
	}
	want := []string{
		"projector_1.2.3_linux_amd64/LICENSE 644 0:0 2026-01-31T12:00:00Z text",
		"projector_1.2.3_linux_amd64/projector 755 0:0 2026-01-31T12:00:00Z program",
	}
	if !slices.Equal(listed, want) {
		t.Errorf("the archive has %q, want %q", listed, want)
	}
}

func TestSums(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"b", "a"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSums(folder); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(folder, sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	const want = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a\n" +
		"3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d  b\n"
	if string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestMaterials(t *testing.T) {
	b := build{version: "v1.2.3", tree: tree{commit: "c851867", at: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}}
	modules := []module{{"example.org/a", "v1.0.0", "h1:a="}, {"example.org/b/v2", "v2.1.0+incompatible", "h1:b="}}
	billOf := func(program string) []byte {
		t.Helper()
		text, err := b.materials(b.program(platform{"linux", "arm64"}, []byte(program)), components(modules, []vendor{{name: "uplot", version: "1.6.0"}}))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	text := billOf("program")
	if !bytes.Equal(text, billOf("program")) {
		t.Error("one program has two bills")
	}
	var got, other bill
	for text, into := range map[string]*bill{string(text): &got, string(billOf("another")): &other} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(got.Serial) ||
		got.Serial == other.Serial {
		t.Errorf("serial numbers %s and %s", got.Serial, other.Serial)
	}
	if got.Metadata.Timestamp != "2026-01-31T12:00:00Z" || got.Metadata.Component.Version != "v1.2.3" ||
		got.Metadata.Component.Hashes[0].Content != fmt.Sprintf("%x", sha256.Sum256([]byte("program"))) {
		t.Errorf("metadata %+v", got.Metadata)
	}
	var purls []string
	for _, c := range got.Components {
		purls = append(purls, c.PURL)
	}
	want := []string{
		"pkg:golang/std@" + strings.TrimPrefix(runtime.Version(), "go"), "pkg:golang/example.org/a@v1.0.0",
		"pkg:golang/example.org/b/v2@v2.1.0%2Bincompatible", "pkg:npm/uplot@1.6.0",
	}
	if !slices.Equal(purls, want) || !slices.Equal(got.Dependencies[0].Uses, want) || len(got.Dependencies) != 1+len(want) {
		t.Errorf("components %q, dependencies %v", purls, got.Dependencies)
	}
}

// TestVendoredIsFound checks that readVendored finds the embedded code of this repository, because
// the bill of materials must contain it.
func TestVendoredIsFound(t *testing.T) {
	found, err := readVendored(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 || !slices.ContainsFunc(found, func(v vendor) bool { return v.name == "uplot" }) {
		t.Errorf("found %v", found)
	}
	for _, v := range found {
		if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(v.version) {
			t.Errorf("%s does not stand in a folder of its name and version", v.folder)
		}
	}
}

func TestLegalFiles(t *testing.T) {
	for name, want := range map[string]bool{
		"LICENSE": true, "LICENCE": true, "LICENSE.md": true, "LICENSE-MIT": true, "COPYING": true, "NOTICE.txt": true, "PATENTS": true,
		"licenses": false, "README.md": false, "NOTICES": false,
	} {
		if legal.MatchString(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestWrongUse(t *testing.T) {
	var out, errOut bytes.Buffer
	for _, flag := range []string{"-dirty", "-quick"} {
		if status := run(t.Context(), []string{flag}, &out, &errOut); status != 2 || out.Len() > 0 {
			t.Errorf("%s: exit status %d, %s", flag, status, out.String())
		}
	}
}
