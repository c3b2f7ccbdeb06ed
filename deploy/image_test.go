//go:build deploy

package deploy_test

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestImage runs the Dockerfile's build steps in two empty folders, without a container engine. The
// binary must be static, contain its version and be identical in both folders. It must run as an
// unprivileged user in a root folder that holds nothing else.
func TestImage(t *testing.T) {
	const version = "v9.8.7-test"
	step := runStep(t)
	if os.Getenv("GOOS") != "" || os.Getenv("GOARCH") != "" {
		t.Fatal("the binary is to run here: unset GOOS and GOARCH")
	}
	first := imageBinary(t, step, version)
	second := imageBinary(t, step, version)
	if sum(t, first) != sum(t, second) {
		t.Error("two builds of the same sources differ")
	}
	expectStatic(t, first)
	expectNoDemo(t, first)
	if out := inEmptyRoot(t, first); !strings.Contains(out, version) {
		t.Errorf("projector version in an image prints %q", out)
	}
}

// runStep returns the command that builds the binary.
func runStep(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile(`(?m)^RUN (.+)$`).FindAllStringSubmatch(string(text), -1)
	if len(steps) != 2 || steps[0][1] != "go mod download" {
		t.Fatalf("the Dockerfile has other steps than this test knows: %q", steps)
	}
	for _, line := range []string{"FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build", "FROM scratch", "USER 65532:65532", `ENTRYPOINT ["/usr/local/bin/projector"]`} {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("the Dockerfile lacks %q", line)
		}
	}
	if !regexp.MustCompile(`(?m)^ARG BUILD_IMAGE=golang:\S+@sha256:[0-9a-f]{64}$`).Match(text) {
		t.Error("the Dockerfile's build image has no digest")
	}
	return steps[1][1]
}

// imageBinary builds in a folder with the files of a container build and returns the binary's path.
func imageBinary(t *testing.T, step, version string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range sent(t) {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, string(text))
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", step)
	cmd.Dir = folder
	// A build with the profile takes minutes. The test therefore only checks that the profile
	// exists.
	if _, err := os.Stat(filepath.Join(folder, "tools", "bench", "projector.pgo")); err != nil {
		t.Error(err)
	}
	cmd.Env = append(os.Environ(), "BUILD=build", "VERSION="+version, "TARGETOS=", "TARGETARCH=", "GOFLAGS=", "MAKEFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", step, err, out)
	}
	return filepath.Join(folder, "bin", "projector")
}

// The function sent returns the files that a container engine sends to the build. These are all
// files of the repository that Dockerfile.dockerignore does not exclude.
func sent(t *testing.T) []string {
	t.Helper()
	out, err := run(t.Context(), "..", "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := os.ReadFile("Dockerfile.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	type rule struct {
		pattern *regexp.Regexp
		sent    bool // the rule begins with "!"
	}
	var rules []rule
	for line := range strings.Lines(string(ignored)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		line, again := strings.CutPrefix(line, "!")
		pattern := regexp.QuoteMeta(line)
		pattern = strings.ReplaceAll(pattern, `\*\*/`, `(.*/)?`)
		pattern = strings.ReplaceAll(pattern, `\*`, `[^/]*`)
		rules = append(rules, rule{regexp.MustCompile(`^` + pattern + `(/|$)`), again})
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimRight(out, "\x00"), "\x00") {
		kept := true
		for _, r := range rules { // the last matching rule decides
			if r.pattern.MatchString(name) {
				kept = r.sent
			}
		}
		if _, err := os.Stat(filepath.Join("..", name)); kept && err == nil { // git still lists deleted files
			names = append(names, name)
		}
	}
	return names
}

func sum(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(text)
}

// expectNoDemo checks that the image's program lacks the modules that only the command demo needs.
// These modules are a Kafka broker and the code that downloads and starts PostgreSQL.
func expectNoDemo(t *testing.T, path string) {
	t.Helper()
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range info.Deps {
		switch module.Path {
		case "github.com/twmb/franz-go/pkg/kfake", "github.com/fergusstrange/embedded-postgres", "github.com/lib/pq", "github.com/xi2/xz":
			t.Errorf("the image contains %s", module.Path)
		}
	}
}

func expectStatic(t *testing.T, path string) {
	t.Helper()
	binary, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = binary.Close() }()
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("the binary asks for a dynamic loader")
		}
	}
}

// inEmptyRoot runs `projector version` in a root folder with only the binary, as the image's user.
// Only root may use chroot. Other users run the binary in its folder.
func inEmptyRoot(t *testing.T, binary string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil { // the image's user must be able to enter it
		t.Fatal(err)
	}
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "projector")
	if err := os.WriteFile(path, text, 0o755); err != nil { // and to run the binary
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, "version")
	if os.Geteuid() == 0 {
		cmd.Path, cmd.Dir = "/projector", "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	}
	cmd.Env = []string{}
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return out.String()
}
