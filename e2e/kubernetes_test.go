//go:build kubernetes

package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"projector/internal/testbank"
)

// TestOnKubernetes deploys the overlays of this repository as docs/deploy.md says. It tests the
// usual changes of a Deployment: new images, scaling, evictions and rotated secrets. After the
// steps that change the Deployment of account_balance, it compares the balances with the oracle.
// `make test-kubernetes STEP=commands` runs one step after the first deployment, which every step
// needs.
func TestOnKubernetes(t *testing.T) {
	k := newKubernetesBank(t)
	records := testbank.Generate(testbank.Options{Seed: seed(t), Records: 60_000, Partitions: k.partitions, Accounts: 1500, Transactions: true})
	part := func(n int) []testbank.Record { return records[len(records)*n/6 : len(records)*(n+1)/6] }
	k.produce(part(0))
	k.production()
	k.step(t, "trial", k.trial)
	k.step(t, "image", func() { k.anotherImage(part(1)) })
	k.step(t, "pods", func() { k.podsComeAndGo(part(2)) })
	k.step(t, "configuration", func() { k.wrongConfiguration(part(3)) })
	k.step(t, "secrets", func() { k.secretsRotate(part(4)) })
	k.step(t, "custom", k.custom)
	k.step(t, "commands", k.commands)
	k.step(t, "stopped", func() { k.stopped(part(5)) })
	k.step(t, "outbox", k.lostEvent) // from here on, the oracle also needs an event that is not in the topic
	k.step(t, "approval", k.twoPeople)
	k.unrestarted()
}

// step runs a part of the test as a subtest. If it fails, the whole test ends, because the next
// steps depend on this step.
func (k *kubernetesBank) step(t *testing.T, name string, do func()) {
	t.Helper()
	passed := t.Run(name, func(t *testing.T) {
		k.t, k.ns.t = t, t
		do()
		if t.Failed() {
			t.Log(k.ns.events(balance))
		}
	})
	k.t, k.ns.t = t, t
	if !passed {
		t.FailNow()
	}
}

func (k *kubernetesBank) production() {
	k.deploy(k.documentedOverlay("v1"))
	k.ns.rolledOut(slices.Collect(maps.Values(projectors))...)
	k.right(exactlyOnce)
}

// anotherImage rolls out another version while records arrive.
func (k *kubernetesBank) anotherImage(records []testbank.Record) {
	finish := k.feed(records, 100, 100*time.Millisecond)
	k.deploy(k.documentedOverlay("v2"))
	k.ns.rolledOut(balance)
	finish()
	k.right(repeated)
	if version := k.ns.kubectl("exec", balance, "-c", "projector", "--", "projector", "version"); !strings.Contains(version, "v2") {
		k.t.Errorf("after the rollout the version is %s", version)
	}
}

// trial deploys and removes the overlay minimal with a Kafka cluster without TLS.
func (k *kubernetesBank) trial() {
	n := newNamespace(k.t, "trial")
	k.objects(n, string(must(os.ReadFile(k.files.path("ca.crt")))(k.t)), "operator")
	database := k.anotherDatabase()
	generators := k.addresses("account-balance", database, "KAFKA_BROKERS="+k.addrs[0], "KAFKA_GROUP=trial-projector")
	// The overlay has no CA, so the connection is encrypted but the server's certificate is not
	// verified.
	generators = strings.ReplaceAll(generators, "sslmode=verify-full&sslrootcert=/etc/projector/trust/postgres-ca.crt", "sslmode=prefer")
	folder := n.kustomization("resources: [{deploy}/overlays/minimal]\nconfigMapGenerator:\n" + generators + imageOfTest)
	n.kubectl("apply", "-k", folder)
	n.rolledOut(balance)
	ready := n.kubectl("exec", balance, "-c", "projector", "--", "projector", "lag", "--output=json")
	if strings.Count(ready, `"topic"`) != int(k.partitions) {
		n.t.Errorf("lag in the trial: %s", ready)
	}
	n.kubectl("delete", "-k", folder, "--wait=true")
}

// podsComeAndGo scales, kills, evicts and deletes pods while records arrive.
func (k *kubernetesBank) podsComeAndGo(records []testbank.Record) {
	finish := k.feed(records, 100, 150*time.Millisecond)
	k.ns.kubectl("scale", balance, "--replicas=3")
	k.ns.rolledOut(balance)
	if _, err := k.ns.try("", "delete", k.pods()[0], "--grace-period=0", "--force"); err != nil && !strings.Contains(err.Error(), "Immediate deletion") {
		k.t.Error(err) // kubectl warns that it does not wait until the process has ended
	}
	k.ns.rolledOut(balance)
	evict := func(pod string) error {
		name := strings.TrimPrefix(pod, "pod/")
		_, err := k.ns.try(fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q, "namespace": %q}}`, name, k.ns.name),
			"create", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", k.ns.name, name), "-f", "-")
		return err
	}
	// The disruption budget protects only ready pods, so the test waits until three pods are ready.
	k.ns.kubectl("wait", "--for=jsonpath={.status.currentHealthy}=3", "poddisruptionbudget/account-balance-projector", "--timeout=90s")
	pods := k.pods()
	if err := evict(pods[0]); err != nil {
		k.t.Errorf("drain: the first eviction: %v", err)
	}
	if err := evict(pods[1]); err == nil || !strings.Contains(err.Error(), "disruption budget") {
		k.t.Errorf("drain: the second eviction at once: %v", err)
	}
	k.ns.rolledOut(balance)
	k.ns.kubectl("delete", k.pods()[0]) // deletion sends SIGTERM, and the pod drains
	k.ns.rolledOut(balance)
	k.ns.kubectl("scale", balance, "--replicas=1")
	k.ns.rolledOut(balance)
	finish()
	k.right(repeated)
}

// wrongConfiguration rolls out the address of a broker that does not exist. The old pods must
// continue.
func (k *kubernetesBank) wrongConfiguration(records []testbank.Record) {
	before := k.pods()
	k.deploy(strings.Replace(k.documentedOverlay("v2"), "KAFKA_BROKERS="+k.kafka.cluster.SASLAddrs()[0], "KAFKA_BROKERS="+os.Getenv("KUBERNETES_HOST")+":9", 1))
	if out, err := k.ns.try("", "rollout", "status", balance, "--timeout=20s"); err == nil {
		k.t.Errorf("pods without a broker are ready: %s", out)
	}
	k.produce(records)
	k.right(repeated)
	k.deploy(k.documentedOverlay("v2", "BREAKER_WINDOW=2000"))
	k.ns.rolledOut(balance)
	for _, pod := range before {
		if strings.Contains(strings.Join(k.pods(), " "), pod) {
			k.t.Errorf("another configuration has not replaced %s", pod)
		}
	}
	k.right(repeated)
}

// secretsRotate changes the passwords of PostgreSQL and Kafka, each first on the server and then in
// its Secret. No pod may restart.
func (k *kubernetesBank) secretsRotate(records []testbank.Record) {
	before := k.pods()
	k.exec("ALTER ROLE bank_app PASSWORD '" + rotatedPassword + "'")
	k.breakOff("bank_app")
	k.ns.secret("projector-database", "password", rotatedPassword)
	k.kafka.setPassword(rotatedPassword)
	k.password = rotatedPassword
	k.ns.secret("projector-kafka", "username", scramUser, "password", rotatedPassword)
	k.produce(records)
	k.right(repeated)
	k.ns.rolledOut(balance)
	if after := k.pods(); strings.Join(before, " ") != strings.Join(after, " ") {
		k.t.Errorf("the pods were %v and are %v", before, after)
	}
	k.unrestarted()
}

// The method custom deploys the overlay of a custom projection and then changes its file. The new
// pods must wait until an operator accepts the change. The old pods must continue until then.
func (k *kubernetesBank) custom() {
	k.ns.kubectl("apply", "-k", k.ns.kustomization(k.customOverlay()))
	k.ns.rolledOut(customized)
	k.allCounted()

	const another = "configMapGenerator:\n  - name: custom-projector-projection\n    behavior: replace\n    files: [projection.sql]\n"
	text := strings.Replace(string(must(os.ReadFile("../deploy/kubernetes/overlays/custom/projection.sql"))(k.t)), "-- How many", "-- In another text, how many", 1)
	changed := func(more ...string) {
		folder := k.ns.kustomization(strings.Replace(k.customOverlay(more...), "configMapGenerator:\n", another, 1))
		if err := os.WriteFile(filepath.Join(folder, "projection.sql"), []byte(text), 0o600); err != nil {
			k.t.Fatal(err)
		}
		k.ns.kubectl("apply", "-k", folder)
	}
	changed()
	if out, err := k.ns.try("", "rollout", "status", customized, "--timeout=20s"); err == nil {
		k.t.Errorf("pods with another text of the projection are ready: %s", out)
	}
	k.produce([]testbank.Record{opened("of-the-old-text")})
	k.allCounted()
	changed("PROJECTOR_ACCEPT_CHANGED_FILE=true")
	k.ns.rolledOut(customized)
	k.produce([]testbank.Record{opened("of-the-new-text")})
	k.allCounted()
	if log, err := k.tryInCluster(k.ns, "INSTANCE=custom in_cluster", "rebuild-custom", "rebuild", "--exit-code"); err != nil {
		k.t.Errorf("rebuild of the custom projection: %v\n%s", err, log)
	}
}

// allCounted waits until the custom projection has consumed all records. It then waits until this
// projection has counted, for each account, at least as many events as account_statement has
// entries. The rebuild at the end of the method custom checks that the counts are exact.
func (k *kubernetesBank) allCounted() {
	k.t.Helper()
	other := *k.world
	other.group = "custom-projector"
	await(k.t, "the custom projection has consumed every record", other.arrived)
	await(k.t, "no account has fewer events than its statement", k.counts(`SELECT count(*)
		FROM (SELECT account_id, count(*) AS events FROM account_statement WHERE event_type <> '`+testbank.IgnoredType+`' GROUP BY 1) AS s
		LEFT JOIN event_count AS c USING (account_id) WHERE coalesce(c.events, 0) < s.events`, 0))
}
