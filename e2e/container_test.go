//go:build container

package e2e_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/e2e/process"
)

const (
	containerUser = 65532 // of deploy/Dockerfile
	renewed       = "renewed-horse-battery"
	// These are the number of accounts in the catch-up, and the number of events of each account.
	caughtUpAccounts, caughtUpEvents = 500_000, 8
)

// containers runs the image of PROJECTOR_TEST_IMAGE with podman. It sets the restrictions of the
// manifests: no root user, no capability, a read-only root file system, and the memory limit of the
// Deployment.
type containers struct {
	t     *testing.T
	image string
	limit string // memory limit
	files *secretFolder
}

func newContainers(t *testing.T, files *secretFolder) *containers {
	t.Helper()
	image := os.Getenv("PROJECTOR_TEST_IMAGE")
	if image == "" {
		t.Fatal("PROJECTOR_TEST_IMAGE names no image: make test-container")
	}
	manifest, err := os.ReadFile("../deploy/kubernetes/base/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	limits := regexp.MustCompile(`limits: \{memory: (\d+)Mi\}`).FindAllSubmatch(manifest, -1)
	if len(limits) != 2 {
		t.Fatalf("the Deployment has %d memory limits, want those of migrate and run", len(limits))
	}
	c := &containers{t: t, image: image, limit: string(limits[1][1]) + "m", files: files}
	c.readable()
	return c
}

// readable makes the secret files readable by the container's group, as Kubernetes does with
// fsGroup.
func (c *containers) readable() {
	c.t.Helper()
	err := filepath.WalkDir(c.files.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		mode := fs.FileMode(0o440)
		if entry.IsDir() {
			mode = 0o750
		}
		if err := os.Chown(path, 0, containerUser); err != nil { //nolint:gosec // G122: a folder that only this test writes
			return err
		}
		return os.Chmod(path, mode) //nolint:gosec // G122: the same
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// The method podman returns the podman arguments that run the image in a container with the given
// name.
func (c *containers) podman(name string, env []string, more ...string) []string {
	args := append([]string{
		"--runtime", "runc", "run", "--rm", "--name", name, "--network", "host",
		"--user", fmt.Sprintf("%[1]d:%[1]d", containerUser), "--read-only", "--read-only-tmpfs=false",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--memory", c.limit, "--memory-swap", c.limit,
		"--ulimit", "nofile=10000:10000", "--ulimit", "nproc=4000:4000",
		"--volume", c.files.dir + ":" + c.files.dir + ":ro",
	}, more...)
	for _, variable := range env {
		args = append(args, "--env", variable)
	}
	return append(args, c.image)
}

// runOnce runs a command of the projector to its end. more has extra arguments for podman.
func (c *containers) runOnce(env, more []string, args ...string) (status int, stdout, stderr string) {
	c.t.Helper()
	binary := process.Binary{Path: "podman"}
	return binary.Once(c.t, nil, append(c.podman(c.name(), env, more...), args...)...)
}

func (c *containers) must(env, more []string, args ...string) string {
	c.t.Helper()
	status, out, said := c.runOnce(env, more, args...)
	if status != 0 {
		c.t.Fatalf("%s: exit status %d: %s", strings.Join(args, " "), status, said)
	}
	return strings.TrimSpace(out)
}

func (c *containers) name() string {
	return fmt.Sprintf("projector-test-%d-%d", os.Getpid(), time.Now().UnixNano())
}

// launch starts `run`. podman forwards signals to the program.
func (c *containers) launch(env []string, args ...string) (p *program, name string) {
	c.t.Helper()
	name = c.name()
	binary := process.Binary{Path: "podman", Secrets: []string{rolesPassword, renewed}}
	p = &program{c.t, binary.Launch(c.t, nil, append(c.podman(name, env), args...)...)}
	c.t.Cleanup(func() { // runs before the podman process is killed, because the container would otherwise stay
		_ = exec.CommandContext(context.Background(), "podman", "rm", "--force", "--time", "0", "--ignore", name).Run()
	})
	return p, name
}

// memory returns the peak memory of the container's control group in MiB. It fails the test if the
// kernel has killed a process of the container.
func (c *containers) memory(name string) int {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), "podman", "inspect", "--format", "{{.State.Pid}}", name).Output()
	if err != nil {
		c.t.Fatalf("the container has ended: %v", err)
	}
	groups, err := os.ReadFile("/proc/" + strings.TrimSpace(string(out)) + "/cgroup")
	if err != nil {
		c.t.Fatal(err)
	}
	folder, peak, events := "", "memory.peak", "memory.events"
	for line := range strings.Lines(string(groups)) {
		switch _, group, _ := strings.Cut(strings.TrimSpace(line), ":"); {
		case strings.HasPrefix(group, "memory:"):
			folder, peak, events = "/sys/fs/cgroup/memory"+strings.TrimPrefix(group, "memory:"), "memory.max_usage_in_bytes", "memory.oom_control"
		case strings.HasPrefix(group, ":") && folder == "":
			folder = "/sys/fs/cgroup" + strings.TrimPrefix(group, ":")
		}
	}
	counted, err := os.ReadFile(filepath.Join(folder, events))
	if err != nil {
		c.t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^oom_kill 0$`).Match(counted) {
		c.t.Errorf("the kernel ended the program for its memory: %s", counted)
	}
	text, err := os.ReadFile(filepath.Join(folder, peak))
	if err != nil {
		c.t.Fatal(err)
	}
	bytes, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		c.t.Fatal(err)
	}
	return bytes >> 20
}

// inContainer returns the environment that the CronJob of the manifests sets.
func (r *roles) inContainer(user string) []string {
	return append(r.connection(user), "KAFKA_TOPIC="+r.topic, "KAFKA_GROUP="+r.group, "PROJECTOR_ACTOR=ann")
}

// TestInAContainer checks that a container projects events, drains on SIGTERM, reads a rotated
// secret, and runs operators' commands without a temporary folder.
func TestInAContainer(t *testing.T) {
	r := newRoles(t)
	c := newContainers(t, r.files)
	c.must(r.connection("bank_migrate"), nil, "migrate")
	p, _ := c.launch(r.connection("bank_app"), r.flags()...)
	r.produce(r.shortStream())
	r.exact(r.oracle(), exactlyOnce)
	await(t, "ready", p.answers("/readyz", 200, ""))

	r.exec("ALTER ROLE bank_app PASSWORD '" + renewed + "'")
	r.breakOff("bank_app")
	await(t, "the old password is refused", p.answers("/readyz", 503, "28P01"))
	r.files.swap(map[string]string{"password": renewed})
	c.readable()
	await(t, "the new password is read", p.answers("/readyz", 200, ""))
	r.exec("ALTER ROLE bank_operator PASSWORD '" + renewed + "'; ALTER ROLE bank_approver PASSWORD '" + renewed + "'; ALTER ROLE bank_migrate PASSWORD '" + renewed + "'")

	operator := r.inContainer("bank_operator")
	account := r.line("SELECT min(account_id) FROM account_balance")
	for _, command := range []string{
		"lag", "gaps", "position", "dlq list", "dlq summary", "audit", "inspect", "rebuild",
		"account show " + account, "dlq replay --class=malformed_payload", "pause --all --reason=test --yes", "resume --all --reason=test --yes",
	} {
		if status, _, said := c.runOnce(operator, nil, strings.Fields(command)...); status != 0 {
			t.Errorf("%s: exit status %d: %s", command, status, said)
		}
	}
	c.must(r.connection("bank_migrate"), nil, "migrate", "--four-eyes=on")
	request := c.must(operator, nil, "pause", "--all", "--reason=test", "--yes")
	c.must(r.inContainer("bank_approver"), nil, "approve", request, "--reason=seen")

	r.produce(r.shortStream())
	p.terminate() // must end within 10 s, although the Deployment allows 30 s
	r.atRest()
}

// TestMemoryOfAContainer catches up on millions of events, and on batches of the largest accepted
// size, within the memory limit of the manifests.
func TestMemoryOfAContainer(t *testing.T) {
	r := newRoles(t)
	c := newContainers(t, r.files)
	c.must(r.connection("bank_migrate"), nil, "migrate")
	large := "70000000"
	r.name(r.topic + "-large")
	r.createTopic(t, r.topic, 6, map[string]*string{"max.message.bytes": &large})

	started := time.Now()
	client := r.client(kgo.DefaultProduceTopic(r.topic), kgo.MaxBufferedRecords(200_000), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	r.credited(client, "acc", caughtUpAccounts, 1, caughtUpEvents, "")
	t.Logf("%d events produced in %s", caughtUpAccounts*caughtUpEvents, time.Since(started).Round(time.Second))

	p, name := c.launch(r.connection("bank_app"), r.flags()...)
	started = time.Now()
	awaitWithin(t, 5*time.Minute, "every event applied", r.credits("acc", caughtUpAccounts, caughtUpEvents))
	t.Logf("caught up in %s, %d of %s MiB", time.Since(started).Round(time.Second), c.memory(name), c.limit)
	await(t, "ready", p.answers("/readyz", 200, ""))

	// These records make one batch of nearly --max-batch-bytes for each partition.
	var largest largestBatch
	batches := r.client(kgo.DefaultProduceTopic(r.topic), kgo.MaxBufferedRecords(1_000_000), kgo.ProducerLinger(time.Minute),
		kgo.ProducerBatchMaxBytes(64<<20), kgo.ManualFlushing(), kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.WithHooks(&largest))
	const events, size = 6, 1 << 20
	r.credited(batches, "big", 300, 1, events, strings.Repeat("x", size/events))
	await(t, "every large event applied", r.credits("big", 300, events))
	await(t, "ready", p.answers("/readyz", 200, ""))
	t.Logf("with batches of up to %d MiB: %d of %s MiB", largest>>20, c.memory(name), c.limit)
	if largest < 48<<20 {
		t.Errorf("the largest batch has %d bytes", largest)
	}
	p.terminate()
	r.atRest()
}

// largestBatch records the uncompressed size of the largest batch that was produced.
type largestBatch int

func (l *largestBatch) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, batch kgo.ProduceBatchMetrics) {
	*l = max(*l, largestBatch(batch.UncompressedBytes))
}

// For each account with the prefix, credited produces one event per version. The parameters from
// and to are the first and the last version. If note is not empty, each event has a field "note",
// which the program ignores.
func (w *world) credited(client *kgo.Client, prefix string, accounts, from, to int, note string) {
	w.t.Helper()
	failed := make(chan error, 1)
	for version := from; version <= to; version++ {
		for i := range accounts {
			record := credit(fmt.Sprintf("%s-%06d", prefix, i), version)
			if note != "" {
				record.Value = append(record.Value[:len(record.Value)-1], `,"note":"`+note+`"}`...)
			}
			client.Produce(w.t.Context(), record, func(_ *kgo.Record, err error) {
				if err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			})
		}
	}
	if err := client.Flush(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	select {
	case err := <-failed:
		w.t.Fatal(err)
	default:
	}
}

// The method credits returns a check for await. It succeeds when each of the accounts has the given
// version and 0.01 EUR for each event up to this version.
func (w *world) credits(prefix string, accounts, version int) func() string {
	return func() string {
		var exact, all int
		err := w.db.QueryRow(w.t.Context(), `SELECT count(*) FILTER (WHERE version = $1 AND balance = $1 * 0.01), count(*)
			FROM account_balance_current WHERE account_id LIKE $2`, version, prefix+"-%").Scan(&exact, &all)
		if err != nil || exact != accounts || all != accounts {
			return fmt.Sprintf("%d of %d accounts are exact, %d are there: %v", exact, accounts, all, err)
		}
		return ""
	}
}
