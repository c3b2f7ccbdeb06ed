//go:build kubernetes

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// namespace is a namespace of the cluster that tools/kubernetes/run started.
type namespace struct {
	t    testing.TB
	name string
}

// newNamespace creates a namespace that admits only restricted pods. It is deleted when the test
// ends.
func newNamespace(t testing.TB, name string) *namespace {
	t.Helper()
	if os.Getenv("KUBERNETES_NODE") == "" {
		t.Fatal("there is no cluster: make test-kubernetes")
	}
	n := &namespace{t, name}
	t.Cleanup(func() { // the deletion waits until the pods have drained
		if out, err := exec.CommandContext(context.Background(), "kubectl", "delete", "namespace", name, "--timeout=90s").CombinedOutput(); err != nil {
			t.Errorf("delete the namespace %s: %v: %s", name, err, out)
		}
	})
	manifest := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`, name)
	if _, err := n.try(manifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	return n
}

// shell runs a script of docs/deploy.md with bash in a folder. The script uses this namespace
// instead of the namespace projector.
func (n *namespace) shell(folder, script string) (out string, err error) {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(script, "-n projector ", "-n "+n.name+" "))
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "NAMESPACE="+n.name)
	var said strings.Builder
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said.String())
	} else if strings.Contains(said.String(), "Warning") { // a warning of Pod Security, or about an unknown field
		err = errors.New(said.String())
	}
	return string(text), err
}

// try runs kubectl. It returns an error for a warning too.
func (n *namespace) try(stdin string, args ...string) (out string, err error) {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), "kubectl", append([]string{"--namespace=" + n.name}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var said strings.Builder
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil || strings.Contains(said.String(), "Warning") {
		err = errors.Join(fmt.Errorf("kubectl %s: %s", strings.Join(args, " "), said.String()), err)
	}
	return strings.TrimSpace(string(text)), err
}

func (n *namespace) kubectl(args ...string) string {
	n.t.Helper()
	out, err := n.try("", args...)
	if err != nil {
		n.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// apply applies a manifest by server-side apply.
func (n *namespace) apply(manifest string) {
	n.t.Helper()
	if _, err := n.try(manifest, "apply", "--server-side", "-f", "-"); err != nil {
		n.t.Fatal(err)
	}
}

// kustomization writes a kustomization for this namespace into a new folder and returns the folder.
// The text {deploy} is replaced by the path of deploy/kubernetes.
func (n *namespace) kustomization(text string) string {
	n.t.Helper()
	folder := n.t.TempDir()
	manifests, err := filepath.Abs("../deploy/kubernetes")
	if err == nil {
		manifests, err = filepath.Rel(folder, manifests) // kustomize accepts only relative paths
	}
	if err == nil {
		text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: " + n.name + "\n" + text
		err = os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(strings.ReplaceAll(text, "{deploy}", manifests)), 0o600)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return folder
}

// customDefinitions installs the custom resource definitions of KEDA and of the Prometheus
// operator, in the versions that the tests of deploy/ use.
func (n *namespace) customDefinitions() {
	n.t.Helper()
	schemas, err := os.ReadFile("../deploy/schemas_test.go")
	if err != nil {
		n.t.Fatal(err)
	}
	for module, folder := range map[string]string{
		"github.com/prometheus-operator/prometheus-operator": "example/prometheus-operator-crd",
		"github.com/kedacore/keda/v2":                        "config/crd/bases",
	} {
		version := regexp.MustCompile(regexp.QuoteMeta(module) + `@v[0-9.]+`).Find(schemas)
		out, err := exec.CommandContext(n.t.Context(), "go", "mod", "download", "-json", string(version)).Output()
		var downloaded struct{ Dir string }
		if err == nil {
			err = json.Unmarshal(out, &downloaded)
		}
		if err != nil {
			n.t.Fatalf("%s: %v", version, err)
		}
		n.kubectl("apply", "--server-side", "-f", filepath.Join(downloaded.Dir, folder))
	}
	n.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
}

// rolledOut waits until all pods of the Deployments have the latest template and are ready.
func (n *namespace) rolledOut(deployments ...string) {
	n.t.Helper()
	started := time.Now()
	for _, deployment := range deployments {
		if out, err := n.try("", "rollout", "status", deployment, "--timeout=180s"); err != nil {
			n.t.Fatalf("%v\n%s\n%s", err, out, n.events(deployment))
		}
	}
	n.t.Logf("%v rolled out in %s", deployments, time.Since(started).Round(time.Second))
}

// events returns the pods and events that explain why a Deployment is not ready.
func (n *namespace) events(deployment string) string {
	pods, _ := n.try("", "get", "pods", "-o", "wide")
	events, _ := n.try("", "get", "events", "--sort-by=.lastTimestamp")
	log, _ := n.try("", "logs", deployment, "--all-containers", "--tail=20")
	return strings.Join([]string{pods, events, log}, "\n\n")
}
