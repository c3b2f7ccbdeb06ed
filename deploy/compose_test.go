//go:build deploy

package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestComposeIsValid loads compose.yaml as Docker Compose does and checks it against the Compose
// schema. All files that compose.yaml mounts must exist.
func TestComposeIsValid(t *testing.T) {
	out, err := runTool(t.Context(), composeLoader, "compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var model struct {
		Services map[string]struct {
			ReadOnly bool     `yaml:"read_only"`
			CapDrop  []string `yaml:"cap_drop"`
			User     string
			Memory   string            `yaml:"mem_limit"`
			Env      map[string]string `yaml:"environment"`
			Ports    []struct {
				HostIP string `yaml:"host_ip"`
			}
			Volumes []struct{ Type, Source string }
		}
	}
	if err := yaml.Unmarshal([]byte(out), &model); err != nil {
		t.Fatal(err)
	}
	for name, service := range model.Services {
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s is open to other machines", name)
			}
		}
		for _, volume := range service.Volumes {
			if _, err := os.Stat(volume.Source); volume.Type == "bind" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, name := range []string{"projector", "migrate", "operator"} {
		s := model.Services[name]
		if !s.ReadOnly || s.User != "65532:65532" || strings.Join(s.CapDrop, "") != "ALL" {
			t.Errorf("%s has more rights than in Kubernetes", name)
		}
		if s.Memory == "" || s.Env["MEMORY_LIMIT"] != "" {
			t.Errorf("%s has the limit %q and MEMORY_LIMIT %q: it needs a limit, of which the program uses three quarters", name, s.Memory, s.Env["MEMORY_LIMIT"])
		}
	}
}

func TestComposeWithAMisspeltKeyFails(t *testing.T) {
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "compose.yaml")
	write(t, path, strings.Replace(string(text), "stop_grace_period:", "stop_grace_perriod:", 1))
	if _, err := runTool(t.Context(), composeLoader, path); err == nil || !strings.Contains(err.Error(), "stop_grace_perriod") {
		t.Errorf("the misspelt key is accepted: %v", err)
	}
}
