package e2e_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// manifestUsers returns the logins in a kustomization. The key is the name of the generated
// ConfigMap.
func manifestUsers(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Generators []struct {
			Name     string
			Literals []string
		} `yaml:"configMapGenerator"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	users := map[string]string{}
	for _, generator := range file.Generators {
		for _, literal := range generator.Literals {
			if address, found := strings.CutPrefix(literal, "DATABASE_URL="); found {
				u, err := url.Parse(address)
				if err != nil {
					t.Fatalf("%s: %s has a DATABASE_URL that cannot be read", path, generator.Name)
				}
				users[generator.Name] = u.User.Username()
			}
		}
	}
	return users
}

// TestLoginsOfTheManifests runs sql/roles.sql, then migrates, runs and repairs with the logins of
// the manifests.
func TestLoginsOfTheManifests(t *testing.T) {
	t.Parallel()
	const folder = "../deploy/kubernetes/"
	users := manifestUsers(t, folder+"base/kustomization.yaml")
	overlays, err := filepath.Glob(folder + "overlays/*/kustomization.yaml")
	if err != nil || len(overlays) == 0 {
		t.Fatalf("overlays: %v %v", overlays, err)
	}
	approvers := manifestUsers(t, folder+"overlays/approvers/kustomization.yaml")
	for _, overlay := range overlays {
		for name, user := range manifestUsers(t, overlay) {
			if user != users[name] && !strings.Contains(overlay, "/approvers/") {
				t.Errorf("%s: %s logs in as %s, the base as %s", overlay, name, user, users[name])
			}
		}
	}

	r := newRoles(t)
	r.mustAs(users["projector-migrate"], "migrate")
	r.produce(r.shortStream())
	p := launch(t, []string{rolesPassword}, r.connection(users["projector"]), r.flags()...)
	r.exact(r.oracle(), exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))
	p.terminate()
	r.atRest()

	skip := func() []string {
		var account string
		var version int64
		if err := r.db.QueryRow(t.Context(), "SELECT account_id, expected_version FROM account_hold ORDER BY account_id LIMIT 1").Scan(&account, &version); err != nil {
			t.Fatal(err)
		}
		return []string{"account", "skip", account, fmt.Sprintf("--version=%d", version), "--reason=test", "--yes"}
	}
	operator := users["projector-commands"]
	r.mustAs(operator, skip()...)
	r.mustAs(users["projector-migrate"], "migrate", "--four-eyes=on")
	request := r.mustAs(operator, skip()...)
	r.mustAs(approvers["projector-commands"], "approve", request, "--reason=seen")
}
