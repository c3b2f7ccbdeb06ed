package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// platform is an operating system and a processor, with the names that Go uses.
type platform struct{ os, arch string }

// A release has an archive for each of these platforms. The image has the Linux platforms.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

type build struct {
	tree      tree
	version   string
	notes     string
	profile   string // profile for the compiler, or "off" for a build without one
	platforms []platform
	bin       string // folder of the binaries
	out       string // folder of the released files
	progress  io.Writer
}

// name returns the common prefix of the files for a platform, for example
// projector_1.2.3_linux_amd64.
func (b *build) name(p platform) string {
	return fmt.Sprintf("projector_%s_%s_%s", b.version[1:], p.os, p.arch)
}

func (b *build) all(ctx context.Context) error {
	for _, folder := range []string{b.bin, b.out} {
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // G301: what is released is for everybody
			return err
		}
	}
	_, _ = fmt.Fprintf(b.progress, "projector %s, commit %s of %s, %s\n", b.version, b.tree.commit, b.tree.at, runtime.Version())
	images := map[platform][]byte{}
	for _, p := range b.platforms {
		program, err := b.platform(ctx, p)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
		if p.os == "linux" {
			images[p] = program
		}
	}
	if err := b.writeImage(images); err != nil {
		return err
	}
	if err := publish(filepath.Join(b.out, notesFile), []byte(b.notes)); err != nil {
		return err
	}
	if err := writeSums(b.out); err != nil {
		return err
	}
	return sign(b.out, b.progress)
}

// platform makes the archive and the bill of materials of one platform. It returns the program.
func (b *build) platform(ctx context.Context, p platform) (program []byte, err error) {
	binary := filepath.Join(b.bin, b.name(p))
	if err := b.compile(ctx, p, binary); err != nil {
		return nil, err
	}
	modules, err := b.check(ctx, p, binary)
	if err != nil {
		return nil, err
	}
	program, err = os.ReadFile(binary) //nolint:gosec // G304: just built
	if err != nil {
		return nil, err
	}
	vendored, err := readVendored(".")
	if err != nil {
		return nil, err
	}
	parts := components(modules, vendored)
	bill, err := b.materials(b.program(p, program), parts)
	if err != nil {
		return nil, err
	}
	if err := publish(filepath.Join(b.out, b.name(p)+".cdx.json"), bill); err != nil {
		return nil, err
	}
	if p.os == "linux" {
		if err := b.imageMaterials(p, program, parts); err != nil {
			return nil, err
		}
	}
	var files []file
	for _, name := range []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(name) //nolint:gosec // G304: named above
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, content: content})
	}
	files = append(files, file{name: "projector", content: program, executable: true})
	packed, err := pack(b.name(p), b.tree.at, files)
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(b.progress, "%s: program %x, %d modules\n", b.name(p), sha256.Sum256(program), len(modules))
	return program, publish(filepath.Join(b.out, b.name(p)+".tar.gz"), packed)
}

// releaseTags are the build tags of a release. They exclude the command demo, so the program
// contains no broker and no download of a database.
const releaseTags = "nodemo"

// demoModules are the modules that a build with releaseTags must not contain.
var demoModules = []string{
	"github.com/fergusstrange/embedded-postgres", "github.com/lib/pq", "github.com/twmb/franz-go/pkg/kfake", "github.com/xi2/xz",
}

// profile is the compiler's profile, as in make build-optimized.
const profile = "tools/bench/projector.pgo"

// compile builds the program. It sets everything explicitly that could differ between two machines:
// the level of the processor, flags from the environment, paths and the build id. It omits the
// symbols for debuggers, which are a third of the file. Panics and profiles show function names and
// lines without these symbols.
func (b *build) compile(ctx context.Context, p platform, binary string) error {
	stamp := fmt.Sprintf("-s -w -buildid= -X main.version=%s -X main.commit=%s", b.version, b.tree.commit)
	_, err := output(ctx, ".", []string{
		"GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly",
	}, "go", "build", "-trimpath", "-buildvcs=false", "-tags="+releaseTags, "-pgo="+b.profile, "-ldflags", stamp, "-o", binary, "./cmd/projector")
	return err
}

// check returns an error if the binary was not built as the method compile requires. Otherwise it
// returns the modules in the binary.
func (b *build) check(ctx context.Context, p platform, binary string) ([]module, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	built := map[string]string{}
	for _, s := range info.Settings {
		built[s.Key] = s.Value
	}
	for key, want := range map[string]string{"GOOS": p.os, "GOARCH": p.arch, "CGO_ENABLED": "0", "-trimpath": "true"} {
		if built[key] != want {
			return nil, fmt.Errorf("the binary was built with %s=%s, want %s", key, built[key], want)
		}
	}
	if p.os == runtime.GOOS && p.arch == runtime.GOARCH {
		said, err := output(ctx, ".", nil, binary, "version")
		if err != nil {
			return nil, err
		}
		if !strings.Contains(said, b.version) || !strings.Contains(said, b.tree.commit[:12]) {
			return nil, fmt.Errorf("the binary calls itself %q", said)
		}
	}
	var modules []module
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if slices.Contains(demoModules, m.Path) {
			return nil, fmt.Errorf("the binary contains %s, which only the demo needs", m.Path)
		}
		modules = append(modules, module{m.Path, m.Version, m.Sum})
	}
	return modules, nil
}
