//go:build deploy

package deploy_test

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// policy is the specification of a NetworkPolicy.
type policy struct {
	Types           []string `yaml:"policyTypes"`
	Ingress, Egress []struct {
		Ports []struct{ Port string }
	}
}

// TestNetworkPolicies checks the ports of each projection's pods. The permitted outgoing ports must
// be those of the addresses in the environment. The permitted incoming ports must be those on which
// the pod listens.
func TestNetworkPolicies(t *testing.T) {
	for _, overlay := range overlays(t) {
		all := objects(t, overlay)
		for _, o := range all {
			for _, template := range o.pods() {
				of := fmt.Sprintf("%s: %s %s", overlay, o.Kind, o.Metadata.Name)
				out, in := permitted(t, of, all, template.Metadata.Labels)
				if want := reached(t, of, all, template.Spec); !slices.Equal(out, want) {
					t.Errorf("%s may reach the ports %v, and needs %v", of, out, want)
				}
				served := []string{}
				if o.Kind == "Deployment" {
					served = append(served, "http")
				}
				if !slices.Equal(in, served) {
					t.Errorf("%s can be reached at %v, and serves %v", of, in, served)
				}
			}
		}
	}
}

// TestReadersCanBeLetIn adds the rule for readers that is a comment in networkpolicy.yaml. The rule
// must select the pods that it names, although the overlays add labels to selectors.
func TestReadersCanBeLetIn(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("kubernetes")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "base", "networkpolicy.yaml")
	before, rule, found := strings.Cut(read(t, path), "    # - from:")
	if !found {
		t.Fatal("networkpolicy.yaml has no rule for readers")
	}
	write(t, path, before+"    - from:"+strings.ReplaceAll(rule, "\n    # ", "\n    "))
	policy := regexp.MustCompile(`(?s)\n {2}ingress:\n(.*?)\n {2}podSelector:`).FindStringSubmatch(build(t, filepath.Join(folder, "overlays", "account-balance")))
	if policy == nil {
		t.Fatal("no policy has rules for incoming connections")
	}
	if _, readers, found := strings.Cut(policy[1], "podSelector:"); !found || !strings.Contains(readers, "payments") || strings.Contains(readers, "account-balance") {
		t.Errorf("the pods of readers cannot connect:\n%s", policy[1])
	}
}

// The function permitted returns the sorted ports that the policies permit for a pod with these
// labels.
func permitted(t *testing.T, of string, all []object, labels map[string]string) (out, in []string) {
	t.Helper()
	closed := map[string]bool{}
	for _, o := range all {
		if o.Kind != "NetworkPolicy" || !includes(labels, o.Spec.PodSelector.MatchLabels) {
			continue
		}
		for _, kind := range o.Spec.Types {
			closed[kind] = true
		}
		for _, rule := range o.Spec.Egress {
			for _, p := range rule.Ports {
				out = append(out, p.Port)
			}
		}
		for _, rule := range o.Spec.Ingress {
			for _, p := range rule.Ports {
				in = append(in, p.Port)
			}
		}
	}
	if !closed["Ingress"] || !closed["Egress"] {
		t.Errorf("%s: no policy closes %v", of, closed)
	}
	return sorted(out), sorted(in)
}

// The function reached returns the ports of the addresses in a pod's environment, and the port of
// DNS.
func reached(t *testing.T, of string, all []object, p pod) []string {
	t.Helper()
	ports := []string{"53"}
	for _, c := range slices.Concat(p.Init, p.Containers) {
		for _, from := range c.EnvFrom {
			for _, o := range all {
				if o.Kind != "ConfigMap" || o.Metadata.Name != from.ConfigMapRef.Name {
					continue
				}
				for name, value := range o.Data {
					switch address := value; {
					case name == "KAFKA_BROKERS":
						address = "kafka://" + value
						fallthrough
					case strings.HasSuffix(name, "_URL"):
						u, err := url.Parse(address)
						if err != nil || u.Port() == "" {
							t.Errorf("%s: %s names no port", of, name)
							continue
						}
						ports = append(ports, u.Port())
					}
				}
			}
		}
	}
	return sorted(ports)
}

// The function sorted returns the ports in order and without duplicates.
func sorted(ports []string) []string {
	set := map[string]bool{}
	for _, p := range ports {
		set[p] = true
	}
	return append([]string{}, slices.Sorted(maps.Keys(set))...)
}
