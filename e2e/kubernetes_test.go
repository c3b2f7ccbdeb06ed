//go:build kubernetes

package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"projector/internal/testbank"
)

// TestOnKubernetes deploys the overlays of this repository as docs/deploy.md says, goes through
// what happens to a Deployment in a year, and compares the balances with the oracle each time.
func TestOnKubernetes(t *testing.T) {
	k := newKubernetesBank(t)
	records := testbank.Generate(testbank.Options{Seed: seed(t), Records: 60_000, Partitions: k.partitions, Accounts: 1500, Transactions: true})
	part := func(n int) []testbank.Record { return records[len(records)*n/6 : len(records)*(n+1)/6] }
	k.produce(part(0))
	step := func(name string, do func()) {
		t.Helper()
		started := time.Now()
		do()
		t.Logf("%s: %s", name, time.Since(started).Round(time.Second))
		if t.Failed() {
			t.Fatalf("after: %s\n%s", name, k.ns.events(balance))
		}
	}
	step("a trial", k.trial)
	step("production", func() {
		k.deploy(k.documentedOverlay("v1"))
		k.ns.rolledOut(projectors["account_balance"], projectors["account_statement"], projectors["daily_turnover"])
		k.right(exactlyOnce)
	})
	step("another image under load", func() {
		finish := k.feed(part(1), 100, 100*time.Millisecond)
		k.deploy(k.documentedOverlay("v2"))
		k.ns.rolledOut(balance)
		finish()
		k.right(repeated)
		if version := k.ns.kubectl("exec", balance, "-c", "projector", "--", "projector", "version"); !strings.Contains(version, "v2") {
			t.Errorf("after the rollout the version is %s", version)
		}
	})
	step("pods come and go", func() { k.podsComeAndGo(part(2)) })
	step("a wrong configuration", func() { k.wrongConfiguration(part(3)) })
	step("secrets are rotated", func() { k.secretsRotate(part(4)) })
	step("a custom projection", k.custom)
	step("commands", k.commands)
	step("stopped", func() { k.stopped(part(5)) })
	step("two people", k.twoPeople)
	k.unrestarted()
}

// trial deploys the overlay minimal, with Kafka in plain text, and removes it.
func (k *kubernetesBank) trial() {
	n := newNamespace(k.t, "trial")
	k.objects(n, string(must(os.ReadFile(k.files.path("ca.crt")))(k.t)), "operator")
	database := k.anotherDatabase()
	generators := k.addresses("account-balance", database, "KAFKA_BROKERS="+k.addrs[0], "KAFKA_GROUP=trial-projector")
	// The overlay trusts no CA, so the connection is encrypted and not verified.
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

// podsComeAndGo scales, kills, evicts and deletes pods under load.
func (k *kubernetesBank) podsComeAndGo(records []testbank.Record) {
	finish := k.feed(records, 100, 150*time.Millisecond)
	k.ns.kubectl("scale", balance, "--replicas=3")
	k.ns.rolledOut(balance)
	if _, err := k.ns.try("", "delete", k.pods()[0], "--grace-period=0", "--force"); err != nil && !strings.Contains(err.Error(), "Immediate deletion") {
		k.t.Error(err) // it warns that nobody waits for the end of the process
	}
	k.ns.rolledOut(balance)
	evict := func(pod string) error {
		name := strings.TrimPrefix(pod, "pod/")
		_, err := k.ns.try(fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q, "namespace": %q}}`, name, k.ns.name),
			"create", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", k.ns.name, name), "-f", "-")
		return err
	}
	pods := k.pods()
	if err := evict(pods[0]); err != nil {
		k.t.Errorf("drain: the first eviction: %v", err)
	}
	if err := evict(pods[1]); err == nil || !strings.Contains(err.Error(), "disruption budget") {
		k.t.Errorf("drain: the second eviction at once: %v", err)
	}
	k.ns.rolledOut(balance)
	k.ns.kubectl("delete", k.pods()[0]) // by SIGTERM: it drains
	k.ns.rolledOut(balance)
	k.ns.kubectl("scale", balance, "--replicas=1")
	k.ns.rolledOut(balance)
	finish()
	k.right(repeated)
}

// wrongConfiguration rolls out a broker that is not there: the old pods continue.
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

// secretsRotate changes both passwords on the servers and then in the Secrets. Nothing restarts.
func (k *kubernetesBank) secretsRotate(records []testbank.Record) {
	before := k.pods()
	k.exec("ALTER ROLE bank_app PASSWORD '" + rotatedPassword + "'")
	k.breakOff("bank_app")
	k.ns.secret("projector-database", "password", rotatedPassword)
	k.kafka.setPassword(rotatedPassword)
	k.ns.secret("projector-kafka", "username", scramUser, "password", rotatedPassword)
	k.produce(records)
	k.right(repeated)
	k.ns.rolledOut(balance)
	if after := k.pods(); strings.Join(before, " ") != strings.Join(after, " ") {
		k.t.Errorf("the pods were %v and are %v", before, after)
	}
	k.unrestarted()
}

// custom deploys the overlay of a custom projection, and another text of its file.
func (k *kubernetesBank) custom() {
	name := k.db.Config().ConnConfig.Database
	overlay := "resources: [{deploy}/overlays/custom]\nconfigMapGenerator:\n" + k.addresses("custom", name, "KAFKA_BROKERS="+k.kafka.cluster.SASLAddrs()[0]) +
		imageOfTest + "patches:\n" + smallRequests
	k.ns.kubectl("apply", "-k", k.ns.kustomization(overlay))
	k.ns.rolledOut("deployment/custom-projector")
	await(k.t, "every event is counted", k.counts("SELECT count(*) FROM ((SELECT account_id, count(*) FROM account_statement GROUP BY 1) "+
		"EXCEPT (SELECT account_id, events FROM event_count)) AS missing", 0))
}
