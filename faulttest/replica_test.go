//go:build faults

package faulttest

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/e2e/process"
	"projector/internal/testbank"
)

type replica struct {
	*process.Process
	hits string // the file in which its failpoints record how often they acted
}

// launch starts a replica. failpoints is its list of failpoints.
func (s *scene) launch(failpoints string, more ...string) *replica {
	s.t.Helper()
	binary := process.Binary{Path: must(projector())(s.t), Secrets: []string{s.password(), testbank.Marker}}
	r := &replica{hits: filepath.Join(s.t.TempDir(), "hits")}
	env := []string{
		"DATABASE_URL=" + s.through, "KAFKA_BROKERS=" + strings.Join(s.addrs, ","),
		"PROJECTOR_FAILPOINTS=" + failpoints, "PROJECTOR_FAILPOINTS_LOG=" + r.hits,
		"MEMORY_LIMIT=512MiB", // independent of the container that runs the test
	}
	flags := slices.Concat([]string{
		"run", "--topic=" + s.reader.Topic, "--group=" + s.reader.Group, "--listen=127.0.0.1:0", "--log-format=json",
		"--retry-initial=100ms", "--retry-max=2s", "--ignore-event-types=" + testbank.IgnoredType,
		"--session-timeout=" + s.setting.session,
	}, s.setting.flags, more)
	r.Process = binary.Launch(s.t, env, flags...)
	s.replicas = append(s.replicas, r)
	s.watch.add(r.PID())
	// A SIGTERM before the program has a signal handler would end it at once and test nothing.
	s.await("the program has started", r.Logged(`"msg":"starting"`))
	return r
}

// password returns the database's password, which no log may contain.
func (s *scene) password() string {
	s.t.Helper()
	secret, _ := must(url.Parse(s.url))(s.t).User.Password()
	return secret
}

// remove removes an ended replica from the scene.
func (s *scene) remove(r *replica) {
	s.replicas = slices.DeleteFunc(s.replicas, func(one *replica) bool { return one == r })
	s.uncounted = true
}

// kill sends SIGKILL to a replica.
func (s *scene) kill(r *replica) {
	s.t.Helper()
	r.Kill()
	s.remove(r)
}

// freeze stops a replica until thaw, as a hypervisor does.
func (s *scene) freeze(r *replica) {
	s.t.Helper()
	r.Freeze()
	s.uncounted = true
}

func (r *replica) thaw() { r.Signal(syscall.SIGCONT) }

// The method dies waits until a failpoint has killed the replica, and returns how often the
// failpoint acted.
func (s *scene) dies(r *replica) int {
	s.t.Helper()
	s.awaitUnderLoad("the failpoint", func() string {
		select {
		case <-r.Ended():
			return ""
		default:
			return "the replica still runs"
		}
	})
	s.remove(r)
	return r.hit()
}

// The method hit returns how often the failpoints of the replica acted.
func (r *replica) hit() int {
	text, err := os.ReadFile(r.hits)
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "\n")
}

// evict removes all members of the group. The group then needs no session timeout to notice killed
// members. Live members join again.
func (s *scene) evict() {
	s.t.Helper()
	groups, err := s.admin.DescribeGroups(s.t.Context(), s.reader.Group)
	check(s.t, err)
	request := kmsg.NewPtrLeaveGroupRequest()
	request.Group = s.reader.Group
	for _, m := range groups[s.reader.Group].Members {
		member := kmsg.NewLeaveGroupRequestMember()
		member.MemberID = m.MemberID
		request.Members = append(request.Members, member)
	}
	if len(request.Members) > 0 {
		_, err = request.RequestWith(s.t.Context(), s.kafka)
		check(s.t, err)
	}
}

// owners returns the process that owns each partition, as stored in the database.
func (s *scene) owners() map[int32]string {
	s.t.Helper()
	rows, err := s.db.Query(s.t.Context(),
		"SELECT partition, owner FROM projector_position WHERE consumer_group = $1 AND topic = $2", s.reader.Group, s.reader.Topic)
	check(s.t, err)
	defer rows.Close()
	owners := map[int32]string{}
	var (
		p     int32
		owner string
	)
	check(s.t, each(rows, []any{&p, &owner}, func() { owners[p] = owner }))
	return owners
}

// assigned returns a check for await. It succeeds when the replica has received partitions.
func (r *replica) assigned() func() string { return r.Logged("partitions assigned") }

// terminate stops all replicas by SIGTERM and expects exit status 0 from each of them.
func (s *scene) terminate() {
	s.t.Helper()
	for _, r := range s.replicas {
		r.Signal(syscall.SIGTERM)
	}
	for _, r := range s.replicas {
		if status := r.Exit(time.Minute); status != 0 {
			s.t.Errorf("SIGTERM: exit status %d, want 0", status)
		}
	}
	s.replicas = nil
}

var retries = regexp.MustCompile(`^projector_retries_total\{dependency="([a-z]+)",.*reason="([^"]*)"`)

// The method retried returns the number of retries for a dependency, from the metrics of the
// running replicas. It counts only retries whose reason contains the given text.
func (s *scene) retried(dependency, text string) (n int) {
	s.t.Helper()
	for _, r := range s.replicas {
		if status, _ := r.Get("/metrics"); status != 200 {
			continue
		}
		for name, value := range r.Metrics() {
			if m := retries.FindStringSubmatch(name); len(m) > 2 && m[1] == dependency && strings.Contains(m[2], text) {
				n += int(value)
			}
		}
	}
	return n
}

// The method retries returns a check for await. It succeeds when there are more retries than the
// given number, and a partition is retrying. The second condition is needed because regular checks
// of the servers count as retries too.
func (s *scene) retries(dependency, text string, than int) func() string {
	return func() string {
		if n := s.retried(dependency, text); n <= than {
			return fmt.Sprintf("%d retries because of %s %s, waiting for more than %d", n, dependency, text, than)
		}
		if !slices.ContainsFunc(s.replicas, (*replica).retrying) {
			return "no partition is retrying"
		}
		return ""
	}
}

func (r *replica) retrying() bool {
	if status, _ := r.Get("/metrics"); status != 200 {
		return false
	}
	for name, value := range r.Metrics() {
		if strings.HasPrefix(name, "projector_retrying{") && value == 1 {
			return true
		}
	}
	return false
}

// peak returns the highest resident memory of a process in bytes, or 0 if the process has ended.
func peak(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err == nil {
				return kb << 10
			}
		}
	}
	return 0
}
