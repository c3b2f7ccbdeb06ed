//go:build deploy

package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// overlays returns the folders that users may apply.
func overlays(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("kubernetes/overlays/*")
	if err != nil || len(found) < 3 {
		t.Fatalf("overlays %v: %v", found, err)
	}
	return append(found, "monitoring")
}

// TestManifestsAreValid builds each overlay and checks it against the schemas of
// Kubernetes, of KEDA and of the Prometheus operator.
func TestManifestsAreValid(t *testing.T) {
	folder := t.TempDir()
	for _, overlay := range overlays(t) {
		write(t, filepath.Join(folder, filepath.Base(overlay)+".yaml"), build(t, overlay))
	}
	if err := validate(t, folder); err != nil {
		t.Error(err)
	}
}

// TestDatabaseProvesItself checks that every connection to PostgreSQL verifies the server's
// certificate. The overlay minimal is an exception, because it is for trying out.
func TestDatabaseProvesItself(t *testing.T) {
	const verified = "sslmode=verify-full&sslrootcert=/etc/projector/trust/"
	for _, overlay := range overlays(t) {
		for _, line := range regexp.MustCompile("DATABASE_URL: .*").FindAllString(build(t, overlay), -1) {
			if filepath.Base(overlay) != "minimal" && !strings.Contains(line, verified) {
				t.Errorf("%s: %s", overlay, line)
			}
		}
	}
	if !strings.Contains(build(t, "kubernetes/overlays/production"), verified) {
		t.Error("production names no database")
	}
}

// TestDocumentedOverlayIsValid builds the example of docs/deploy.md.
func TestDocumentedOverlayIsValid(t *testing.T) {
	const checkout = "../projector/deploy/kubernetes/overlays/production"
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(read(t, "../docs/deploy.md"))
	if len(example) != 2 || !strings.Contains(example[1], checkout) {
		t.Fatal("docs/deploy.md shows no overlay")
	}
	folder := t.TempDir()
	production, err := filepath.Abs("kubernetes/overlays/production")
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(folder, production) // kustomize requires a relative path
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "kustomization.yaml"), strings.Replace(example[1], checkout, relative, 1))
	built := build(t, folder)
	for _, wanted := range []string{"KAFKA_BROKERS: kafka-0.example:9093", "image: your/projector:v1.2.3", "maxReplicaCount: 24", "bank_migrate@db.example", "bank_operator@db.example", "secretName: projector-database-operator", "cidr: 10.1.0.0/24", "cidr: 10.2.0.5/32"} {
		if !strings.Contains(built, wanted) {
			t.Errorf("the overlay has no %q", wanted)
		}
	}
	path := filepath.Join(t.TempDir(), "documented.yaml")
	write(t, path, built)
	if err := validate(t, path); err != nil {
		t.Error(err)
	}
}

// TestMisspeltFieldFails misspells one field of each kind of object, each in its own copy. One run
// validates all copies.
func TestMisspeltFieldFails(t *testing.T) {
	production, folder := build(t, "kubernetes/overlays/production"), t.TempDir()
	fields := []string{
		"terminationGracePeriodSeconds:", // Deployment
		"jobTemplate:",                   // CronJob
		"apiGroups:",                     // Role
		"unhealthyPodEvictionPolicy:",    // PodDisruptionBudget
		"policyTypes:",                   // NetworkPolicy
		"automountServiceAccountToken:",  // ServiceAccount
		"maxReplicaCount:",               // ScaledObject
		"secretTargetRef:",               // TriggerAuthentication
		"podMetricsEndpoints:",           // PodMonitor
		"groups:",                        // PrometheusRule
	}
	misspelt := func(field string) string { return field[1:2] + field[0:1] + field[2:] }
	for _, field := range fields {
		changed := strings.Replace(production, field, misspelt(field), 1)
		if changed == production {
			t.Fatalf("the production overlay has no %s", field)
		}
		write(t, filepath.Join(folder, strings.TrimSuffix(field, ":")+".yaml"), changed)
	}
	err := validate(t, folder)
	if err == nil {
		t.Fatal("no misspelt field is refused")
	}
	for _, field := range fields {
		// Each file has another misspelt field, so only the error about this field's file contains
		// this name.
		if !strings.Contains(err.Error(), "additional properties '"+strings.TrimSuffix(misspelt(field), ":")+"' not allowed") {
			t.Errorf("%s is not refused as an unknown field: %v", misspelt(field), err)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
