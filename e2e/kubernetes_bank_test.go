//go:build kubernetes

package e2e_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"projector/e2e/process"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

const (
	customized      = "deployment/custom-projector"
	balance         = "deployment/account-balance-projector"
	rotatedPassword = "renewed-horse-battery" // the password after secretsRotate
)

// kubernetesBank is a bank whose projectors run in a cluster. Kafka and PostgreSQL run on this
// machine, with TLS, SCRAM, ACLs and the roles of sql/roles.sql.
type kubernetesBank struct {
	*roles
	ns       *namespace
	kafka    *secured
	password string // password of the Kafka user
	folder   string // of the production overlay of docs/deploy.md
}

// projectors has the name of each projection's Deployment in the overlay production.
var projectors = map[string]string{
	"account_balance": balance, "account_statement": "deployment/account-statement-projector", "daily_turnover": "deployment/daily-turnover-projector",
}

func newKubernetesBank(t *testing.T) *kubernetesBank {
	t.Helper()
	host := os.Getenv("KUBERNETES_HOST")
	authority := newAuthority(t)
	certificate := issue(t, authority, "server", host, "127.0.0.1")
	kafka := devtest.Kafka(t, devstack.KafkaOptions{Host: host, Security: &devstack.KafkaSecurity{Certificate: certificate, ClientCA: authority.PEM()}})
	postgres := devtest.PostgresWith(t, devstack.PostgresOptions{Certificate: &certificate, Settings: map[string]string{"listen_addresses": "127.0.0.1," + host}})
	n := newNamespace(t, "bank") // created after the servers, so that its pods end before the servers
	n.customDefinitions()
	k := &kubernetesBank{roles: newRolesOn(t, kafka.Addrs(), postgres, 0, authority), ns: n}
	k.letPodsIn(host)
	k.partitions = 6
	k.name("account-events")
	k.group = "account-balance-projector"
	k.createTopic(t, k.topic, k.partitions, nil)
	k.createTopic(t, k.dlq, k.partitions, nil)
	k.kafka = &secured{world: k.world, cluster: kafka}
	k.kafka.setPassword(scramPassword)
	k.password = scramPassword
	k.access()
	k.exec("CREATE TABLE event_count (account_id text PRIMARY KEY, events bigint NOT NULL, last_at timestamptz NOT NULL); " +
		"GRANT SELECT, INSERT, UPDATE ON event_count TO projector_projection; GRANT SELECT ON event_count TO projector_operator, projector_migrator")
	t.Setenv("CGO_ENABLED", "0") // the image has no C library
	for _, tag := range []string{"v1", "v2"} {
		k.image(tag)
	}
	k.objects(n, string(authority.PEM()), "operator")
	return k
}

// letPodsIn makes PostgreSQL accept passwords from the pods' network.
func (k *kubernetesBank) letPodsIn(host string) {
	k.t.Helper()
	rules, err := os.OpenFile(k.line("SHOW hba_file"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(rules, "hostssl all all %s/24 scram-sha-256\n", host)
	}
	if err == nil {
		err = rules.Close()
	}
	if err != nil {
		k.t.Fatal(err)
	}
	k.exec("SELECT pg_reload_conf()")
}

// access grants the projector's Kafka user the permissions of docs/security.md.
func (k *kubernetesBank) access() {
	k.t.Helper()
	const user = "User:" + scramUser
	for _, operation := range []kadm.ACLOperation{kadm.OpRead, kadm.OpDescribeConfigs} {
		k.kafka.allow(user, permission{operation, k.topic, ""}, permission{operation, k.dlq, ""})
	}
	k.kafka.allow(user, permission{kadm.OpWrite, k.dlq, ""})
	for _, group := range []string{k.group, "account-statement-projector", "daily-turnover-projector", "custom-projector", "trial-projector"} {
		k.kafka.allow(user, permission{kadm.OpRead, "", group})
	}
}

// image builds the program and loads it into the cluster as an image with the given tag.
func (k *kubernetesBank) image(tag string) {
	k.t.Helper()
	program := filepath.Join(k.t.TempDir(), "projector")
	ctx, name := k.t.Context(), "localhost/projector:"+tag
	if err := process.Build(ctx, program, "-tags=nodemo", "-ldflags=-s -w -X main.version="+tag); err != nil {
		k.t.Fatal(err)
	}
	for _, command := range [][]string{{"../.ci/image", name, program}, {"../tools/kubernetes/image", name}} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			k.t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
}

// objects creates in a namespace the objects that docs/deploy.md requires. person is the login of
// an operator or an approver. The Secret has the password of this login.
func (k *kubernetesBank) objects(n *namespace, authority, person string) {
	n.t.Helper()
	n.secret("projector-database-"+person, "password", rolesPassword)
	n.secret("projector-kafka", "username", scramUser, "password", scramPassword)
	n.kubectl("create", "configmap", "projector-trust", "--from-literal=postgres-ca.crt="+authority, "--from-literal=kafka-ca.crt="+authority)
	if person == "operator" {
		n.secret("projector-database", "password", rolesPassword)
		n.secret("projector-database-owner", "password", rolesPassword)
	}
}

// secret creates or replaces a Secret.
func (n *namespace) secret(name string, keys ...string) {
	n.t.Helper()
	args := []string{"create", "secret", "generic", name, "--dry-run=client", "-o=json"}
	for pair := range slices.Chunk(keys, 2) {
		args = append(args, "--from-literal="+pair[0]+"="+pair[1])
	}
	n.apply(n.kubectl(args...))
}

// database returns the URL with which a login connects to a database, as a manifest has it.
func (k *kubernetesBank) database(login, name string) string {
	_, port, err := net.SplitHostPort(k.cluster.Addr())
	if err != nil {
		k.t.Fatal(err)
	}
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=verify-full&sslrootcert=/etc/projector/trust/postgres-ca.crt",
		login, net.JoinHostPort(os.Getenv("KUBERNETES_HOST"), port), name)
}

// addresses returns the ConfigMap generators of an overlay that set the server addresses of one
// projection.
func (k *kubernetesBank) addresses(prefix, database string, more ...string) string {
	var text strings.Builder
	for suffix, login := range map[string]string{"": "bank_app", "-migrate": "bank_migrate", "-commands": "bank_operator"} {
		fmt.Fprintf(&text, "  - name: %s-projector%s\n    behavior: merge\n    literals:\n      - DATABASE_URL=%s\n", prefix, suffix, k.database(login, database))
		if suffix == "" {
			for _, literal := range append([]string{"IGNORE_EVENT_TYPES=" + testbank.IgnoredType}, more...) {
				fmt.Fprintf(&text, "      - %s\n", literal)
			}
		}
	}
	return text.String()
}

const (
	// These requests are small, because the usual CPU requests of seven projectors do not fit on a
	// node of 2 processors.
	smallRequests = "  - target: {kind: Deployment}\n    patch: |-\n      - {op: replace, path: /spec/template/spec/containers/0/resources/requests/cpu, value: 10m}\n"
	imageOfTest   = "images: [{name: projector, newName: localhost/projector, newTag: v1}]\n"
)

// documentedOverlay returns the overlay of docs/deploy.md with the addresses of this test.
func (k *kubernetesBank) documentedOverlay(tag string, more ...string) string {
	k.t.Helper()
	name := k.db.Config().ConnConfig.Database
	brokers := "KAFKA_BROKERS=" + k.kafka.cluster.SASLAddrs()[0]
	text := k.replaced(k.addressed("overlays/production", tag), map[string]string{
		"\nimages:":    "\n" + k.addresses("account-statement", name, brokers) + k.addresses("daily-turnover", name, brokers) + "images:",
		"\npatches:\n": "\npatches:\n" + smallRequests,
	})
	for _, literal := range more {
		text = strings.Replace(text, "      - KAFKA_BROKERS=", "      - "+literal+"\n      - KAFKA_BROKERS=", 1)
	}
	return text
}

// The method addressed returns the kustomization of docs/deploy.md that contains the given text. It
// replaces the addresses and the image by the addresses and the image of the test.
func (k *kubernetesBank) addressed(has, tag string) string {
	k.t.Helper()
	text := regexp.MustCompile(`(?m)^(apiVersion|kind|namespace):.*\n`).ReplaceAllString(documented(k.t, has), "") // the function kustomization adds these lines itself
	text = regexp.MustCompile(`postgres://(\w+)@db\.example\S*`).ReplaceAllStringFunc(text, func(address string) string {
		u, err := url.Parse(address)
		if err != nil {
			k.t.Fatal(err)
		}
		return k.database(u.User.Username(), k.db.Config().ConnConfig.Database)
	})
	return k.replaced(text, map[string]string{
		"../projector/deploy/kubernetes":            "{deploy}",
		"kafka-0.example:9093,kafka-1.example:9093": k.kafka.cluster.SASLAddrs()[0] + "\n      - IGNORE_EVENT_TYPES=" + testbank.IgnoredType,
		"your/projector":                            "localhost/projector",
		"v1.2.3":                                    tag,
	})
}

// The method replaced replaces parts of a text. The test fails if a part does not occur.
func (k *kubernetesBank) replaced(text string, by map[string]string) string {
	k.t.Helper()
	for from, to := range by {
		if !strings.Contains(text, from) {
			k.t.Fatalf("docs/deploy.md has no %q in\n%s", from, text)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	return text
}

// customOverlay returns overlays/custom with the addresses of the test.
func (k *kubernetesBank) customOverlay(more ...string) string {
	k.t.Helper()
	brokers := "KAFKA_BROKERS=" + k.kafka.cluster.SASLAddrs()[0]
	return "resources: [{deploy}/overlays/custom]\nconfigMapGenerator:\n" + k.addresses("custom", k.db.Config().ConnConfig.Database, append(more, brokers)...) +
		imageOfTest + "patches:\n" + smallRequests
}

// deploy applies an overlay and does not wait for its pods.
func (k *kubernetesBank) deploy(kustomization string) {
	k.t.Helper()
	k.folder = k.ns.kustomization(kustomization)
	k.ns.kubectl("apply", "-k", k.folder)
}

// The method right waits until the balances equal those of the oracle and the other projections
// have consumed all records. It does not compare the rows of the other projections, because their
// oracles need a stream without errors.
func (k *kubernetesBank) right(allow compare.Repeats) {
	k.t.Helper()
	k.exact(k.oracle(), allow)
	for _, group := range []string{"account-statement-projector", "daily-turnover-projector"} {
		other := *k.world
		other.group = group
		await(k.t, group+" has consumed every record", other.arrived)
	}
}

// The method pods returns the names of the pods of account_balance, except those that are being
// deleted.
func (k *kubernetesBank) pods() []string {
	k.t.Helper()
	return strings.Fields(k.ns.kubectl("get", "pods", "-l", "app.kubernetes.io/instance=account-balance,app.kubernetes.io/component=run",
		"-o", "go-template={{range .items}}{{if not .metadata.deletionTimestamp}}pod/{{.metadata.name}} {{end}}{{end}}"))
}

// unrestarted fails the test if the kubelet has restarted a container of the running projectors.
func (k *kubernetesBank) unrestarted() {
	k.t.Helper()
	out := k.ns.kubectl("get", "pods", "-l", "app.kubernetes.io/component=run", "-o", `jsonpath={range .items[*]}{.status.containerStatuses[0].restartCount} {end}`)
	if strings.Trim(out, "0 ") != "" {
		k.t.Errorf("containers were restarted: %s", out)
	}
}

// anotherDatabase creates a database in the same PostgreSQL cluster and runs sql/roles.sql in it.
func (k *kubernetesBank) anotherDatabase() (name string) {
	k.t.Helper()
	address, err := k.cluster.NewDatabase(k.t.Context(), "")
	if err != nil {
		k.t.Fatal(err)
	}
	conn, err := pgx.Connect(k.t.Context(), address)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = conn.Close(k.t.Context()) }()
	text, err := os.ReadFile("../sql/roles.sql")
	if err == nil {
		_, err = conn.Exec(k.t.Context(), string(text))
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return conn.Config().Database
}
