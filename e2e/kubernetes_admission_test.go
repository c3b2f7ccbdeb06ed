//go:build kubernetes

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOverlaysAreAdmitted applies every overlay to a real API server, in namespaces that admit only
// restricted pods. It applies each overlay three times: by client-side apply, by server-side apply,
// and by client-side apply again.
func TestOverlaysAreAdmitted(t *testing.T) {
	production := newNamespace(t, "projector")
	const overlays = "../deploy/kubernetes/overlays/"
	if out, err := production.try("", "apply", "-k", overlays+"production"); err == nil ||
		!strings.Contains(err.Error(), "no matches for kind") || !strings.Contains(out, "deployment.apps/daily-turnover-projector") {
		t.Errorf("without their definitions, all but the objects of KEDA and Prometheus should be applied: %v\n%s", err, out)
	}
	production.customDefinitions()
	found, err := filepath.Glob(overlays + "*")
	if err != nil || len(found) < 7 {
		t.Fatalf("overlays %v: %v", found, err)
	}
	for _, overlay := range found {
		t.Run(filepath.Base(overlay), func(t *testing.T) {
			n := &namespace{t, "projector"}
			switch name := filepath.Base(overlay); name {
			case "production":
			case "approvers":
				n.name = "projector-approvers" // the overlay creates this namespace
			default:
				n = newNamespace(t, "admit-"+name)
			}
			n.kubectl("apply", "-k", overlay)
			n.kubectl("apply", "--server-side", "-k", overlay) // must report no conflict
			n.kubectl("diff", "--server-side", "-k", overlay)  // has exit status 1 if another apply would change anything
			n.kubectl("apply", "-k", overlay)
			n.podsAreAdmitted(overlay)
		})
	}
	t.Run("replicas survive KEDA", func(t *testing.T) { newNamespace(t, "replicas").replicasSurvive() })
}

// podsAreAdmitted creates a pod from each template of an overlay with --dry-run=server. The reason
// is that Pod Security only warns about a Deployment with a forbidden template, but refuses its
// pods.
func (n *namespace) podsAreAdmitted(overlay string) {
	n.t.Helper()
	type template struct {
		Metadata map[string]any `json:"metadata"`
		Spec     map[string]any `json:"spec"`
	}
	var list struct {
		Items []struct {
			Kind string
			Spec struct {
				Template    template
				JobTemplate struct{ Spec struct{ Template template } }
			}
		}
	}
	if err := json.Unmarshal([]byte(n.kubectl("get", "deployments,cronjobs", "-o", "json")), &list); err != nil {
		n.t.Fatal(err)
	}
	if len(list.Items) == 0 {
		n.t.Fatalf("%s has no pods", overlay)
	}
	for _, item := range list.Items {
		of := item.Spec.Template
		if item.Kind == "CronJob" {
			of = item.Spec.JobTemplate.Spec.Template
		}
		of.Metadata["name"] = "trial"
		pod := func() string {
			text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": of.Metadata, "spec": of.Spec})
			if err != nil {
				n.t.Fatal(err)
			}
			return string(text)
		}
		if _, err := n.try(pod(), "create", "--dry-run=server", "-f", "-"); err != nil {
			n.t.Errorf("%s: a pod of a %s is refused: %v", overlay, item.Kind, err)
		}
		of.Spec["hostNetwork"] = true
		if _, err := n.try(pod(), "create", "--dry-run=server", "-f", "-"); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
			n.t.Errorf("%s: a pod of a %s on the host's network is not refused: %v", overlay, item.Kind, err)
		}
	}
}

// replicasSurvive follows the step of docs/deploy.md from four fixed replicas to scaling by KEDA.
// The Deployment must keep the four replicas.
func (n *namespace) replicasSurvive() {
	n.t.Helper()
	before := n.kustomization("resources: [{deploy}/overlays/minimal]\nreplicas: [{name: account-balance-projector, count: 4}]\n")
	after := n.kustomization("resources: [{deploy}/overlays/account-balance]\n")
	n.kubectl("apply", "-k", before)
	if _, err := n.shell(after, documented(n.t, "view-last-applied")); err != nil {
		n.t.Fatal(err)
	}
	if got := n.kubectl("get", "deployment/account-balance-projector", "-o", "jsonpath={.spec.replicas}"); got != "4" {
		n.t.Errorf("%s replicas are left of 4", got)
	}
}

// The function documented returns the code block of docs/deploy.md that contains a text.
func documented(t testing.TB, has string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)\n```[a-z]*\n(.*?)```").FindAllSubmatch(page, -1) {
		if strings.Contains(string(block[1]), has) {
			return string(block[1])
		}
	}
	t.Fatalf("docs/deploy.md has no block with %q", has)
	return ""
}
