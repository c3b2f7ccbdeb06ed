//go:build deploy

package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// These are the tools that check the manifests. Each is downloaded once per version.
const (
	kubeconform   = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"
	kustomize     = "sigs.k8s.io/kustomize/kustomize/v5@v5.8.1"
	composeLoader = "github.com/compose-spec/compose-go/v2/cmd@v2.9.0"
)

// run returns the output of a program. If the program fails, the error contains its error output.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), errOut.String())
	}
	return out.String(), nil
}

// runTool runs a tool like run. The tool's program is fetched only once.
func runTool(ctx context.Context, tool string, args ...string) (string, error) {
	once, _ := programs.LoadOrStore(tool, sync.OnceValues(func() (string, error) { return fetchProgram(tool) }))
	path, err := once.(func() (string, error))()
	if err != nil {
		return "", err
	}
	return run(ctx, ".", path, args...)
}

var programs sync.Map // by tool

// fetchProgram copies the program of a tool into the folder of the test binary, which go test
// removes. The command go run takes the program from Go's cache, or builds it. It loads all packages
// of the tool first, which can take longer than the tool itself.
func fetchProgram(tool string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	module, _, _ := strings.Cut(tool, "@")
	path := filepath.Join(filepath.Dir(self), "tool-"+strings.ReplaceAll(module, "/", "-"))
	_, err = run(context.Background(), ".", "go", "run", "-exec=cp", tool, path)
	return path, err
}

// build returns the result of kustomize build for a folder. kustomize runs only once for each
// folder.
func build(t *testing.T, folder string) string {
	t.Helper()
	once, _ := builds.LoadOrStore(folder, sync.OnceValues(func() (string, error) {
		return runTool(context.Background(), kustomize, "build", folder)
	}))
	out, err := once.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var builds sync.Map

// validate runs kubeconform on a file or folder.
func validate(t *testing.T, path string) error {
	t.Helper()
	folder, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	_, err = runTool(t.Context(), kubeconform, "-strict", "-schema-location", filepath.Join(folder, schemaLocation), path)
	return err
}

func moduleFolder(module string) (string, error) {
	out, err := run(context.Background(), ".", "go", "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var answer struct{ Dir string }
	err = json.Unmarshal([]byte(out), &answer)
	return answer.Dir, err
}
