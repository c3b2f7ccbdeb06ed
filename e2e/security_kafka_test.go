//go:build kafka || kubernetes

package e2e_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// secured is a test environment on a Kafka cluster with authentication.
type secured struct {
	*world
	cluster *devstack.Kafka
	files   *secretFolder
}

const (
	plainUser, plainPassword = "plain", "plain-horse-battery"
	scramUser, scramPassword = "projector", "scram-horse-battery"
)

// newSecured starts the cluster. The field files is a folder with the certificates and passwords of
// the clients.
func newSecured(t *testing.T) *secured {
	t.Helper()
	authority := newAuthority(t)
	cluster := devtest.Kafka(t, devstack.KafkaOptions{Security: &devstack.KafkaSecurity{
		Certificate: issue(t, authority, "broker", "127.0.0.1", "kafka.test"),
		ClientCA:    authority.PEM(),
		Users:       map[string]string{plainUser: plainPassword},
	}, Settings: map[string]string{"listener.name.sasl_ssl.scram-sha-512.connections.max.reauth.ms": "5000"}})
	client := issue(t, authority, "projector")
	s := &secured{world: newWorldOn(t, cluster.Addrs(), devtest.Database(t), 2), cluster: cluster}
	s.files = newSecretFolder(t, map[string]string{
		"ca.crt": string(authority.PEM()), "tls.crt": string(client.Cert), "tls.key": string(client.Key),
		"plain": plainPassword + "\n", "scram": scramPassword + "\n", "wrong": "wrong-horse-battery", "token": unsecuredToken(),
	})
	s.createTopic(t, s.dlq, s.partitions, nil)
	s.setPassword(scramPassword)
	return s
}

// unsecuredToken returns a JSON web token without a signature, which the test's broker accepts.
func unsecuredToken() string {
	now := time.Now().Unix()
	part := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"sub":"token-user","iat":%d,"exp":%d}`, now, now+3600)
	return part([]byte(`{"alg":"none"}`)) + "." + part([]byte(claims)) + "."
}

// setPassword sets the SCRAM user's password in Kafka.
func (s *secured) setPassword(secret string) {
	s.t.Helper()
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} { // one request for each, because Kafka refuses both in one request
		user := kadm.UpsertSCRAM{User: scramUser, Mechanism: mechanism, Iterations: 4096, Password: secret}
		altered, err := s.admin.AlterUserSCRAMs(s.t.Context(), nil, []kadm.UpsertSCRAM{user})
		if err == nil {
			err = altered.Error()
		}
		if err != nil {
			s.t.Fatalf("set the SCRAM password: %v", err)
		}
	}
}

// permission is an ACL for one operation.
type permission struct {
	operation kadm.ACLOperation
	topic     string
	group     string
}

func (p permission) String() string {
	if p.group != "" {
		return fmt.Sprintf("%s on group %s", strings.ToUpper(p.operation.String()), p.group)
	}
	return fmt.Sprintf("%s on topic %s", strings.ToUpper(p.operation.String()), p.topic)
}

func (p permission) builder(principal string) *kadm.ACLBuilder {
	b := kadm.NewACLs().Allow(principal).AllowHosts("*").Operations(p.operation).ResourcePatternType(kadm.ACLPatternLiteral)
	if p.group != "" {
		return b.Groups(p.group)
	}
	return b.Topics(p.topic)
}

func (s *secured) allow(principal string, permissions ...permission) {
	s.t.Helper()
	for _, p := range permissions {
		results, err := s.admin.CreateACLs(s.t.Context(), p.builder(principal))
		if err == nil {
			err = results[0].Err
		}
		if err != nil {
			s.t.Fatalf("grant %s: %v", p, err)
		}
	}
}

func (s *secured) revoke(principal string, p permission) {
	s.t.Helper()
	results, err := s.admin.DeleteACLs(s.t.Context(), p.builder(principal))
	if err == nil {
		err = results[0].Err
	}
	if err != nil || len(results[0].Deleted) == 0 {
		s.t.Fatalf("revoke %s: %v, %d deleted", p, err, len(results[0].Deleted))
	}
}

// scram returns the flags of the SCRAM user.
func (s *secured) scram() []string {
	return []string{
		"--brokers=" + s.cluster.SASLAddrs()[0], "--tls", "--tls-ca=" + s.files.path("ca.crt"),
		"--sasl-mechanism=SCRAM-SHA-512", "--sasl-username=" + scramUser, "--sasl-password-file=" + s.files.path("scram"),
	}
}

// TestSecuredCluster uses a cluster with TLS, SASL and ACLs. It tries every way to authenticate,
// removes each permission once, and changes a password.
func TestSecuredCluster(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	t.Run("ways in", s.waysIn)
	p := s.permissions()
	s.rotation(p)
	p.terminate()
	s.atRest()
}

// waysIn runs `dlq list` with each way of authentication, and with some wrong credentials. The
// command connects, requests metadata and reads records.
func (s *secured) waysIn(t *testing.T) {
	const everyone = "User:*"
	s.createTopic(t, "open.dlq", 1, nil)
	s.allow(everyone, permission{kadm.OpRead, "open.dlq", ""})
	sasl, mutual := "--brokers="+s.cluster.SASLAddrs()[0], "--brokers="+s.cluster.TLSAddrs()[0]
	file := s.files.path
	ca := "--tls-ca=" + file("ca.crt")
	password := func(mechanism, user, file string) []string {
		return []string{sasl, "--tls", ca, "--sasl-mechanism=" + mechanism, "--sasl-username=" + user, "--sasl-password-file=" + file}
	}
	for name, test := range map[string]struct {
		args []string
		want string // part of the error, or "" if the command must succeed
	}{
		"PLAIN":                   {password("PLAIN", plainUser, file("plain")), ""},
		"SCRAM-SHA-256":           {password("SCRAM-SHA-256", scramUser, file("scram")), ""},
		"SCRAM-SHA-512":           {password("SCRAM-SHA-512", scramUser, file("scram")), ""},
		"OAUTHBEARER":             {[]string{sasl, "--tls", ca, "--sasl-mechanism=OAUTHBEARER", "--sasl-token-file=" + file("token")}, ""},
		"client certificate":      {[]string{mutual, "--tls", ca, "--tls-cert=" + file("tls.crt"), "--tls-key=" + file("tls.key")}, ""},
		"server name":             {append(password("PLAIN", plainUser, file("plain")), "--tls-server-name=kafka.test"), ""},
		"wrong password":          {password("SCRAM-SHA-512", scramUser, file("wrong")), "SASL_AUTHENTICATION_FAILED"},
		"unknown authority":       {[]string{sasl, "--tls"}, "unknown authority"},
		"wrong server name":       {append(password("PLAIN", plainUser, file("plain")), "--tls-server-name=other.test"), "other.test"},
		"no client certificate":   {[]string{mutual, "--tls", ca}, "certificate"},
		"no TLS":                  {[]string{sasl}, ""},
		"a topic that is not his": {append(password("PLAIN", plainUser, file("plain")), "--topic="+s.topic), "missing ACL: READ on topic " + s.dlq},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"dlq", "list", "--output=json", "--topic=open"}, test.args...)
			status, _, stderr := once(t, []string{"DATABASE_URL=" + s.url}, args...)
			if works := test.want == "" && name != "no TLS"; works != (status == 0) || !strings.Contains(stderr, test.want) {
				t.Errorf("exit status %d, want an error with %q:\n%s", status, test.want, stderr)
			}
			for _, secret := range []string{plainPassword, scramPassword, unsecuredToken()} {
				if strings.Contains(stderr, secret) {
					t.Error("a secret was printed")
				}
			}
		})
	}
}

// permissions starts the program without permissions and grants one permission after another. It
// then revokes each permission for a moment. The program must name each missing permission and
// continue without a restart.
func (s *secured) permissions() *program {
	const user = "User:" + scramUser
	records := s.shortStream()
	s.produce(records[:len(records)/2])
	p := launch(s.t, []string{plainPassword, scramPassword}, []string{"DATABASE_URL=" + s.url}, s.flags(s.scram()...)...)
	needed := []permission{
		{kadm.OpRead, s.topic, ""}, {kadm.OpRead, "", s.group}, {kadm.OpWrite, s.dlq, ""},
	}
	for i, permission := range needed {
		if i == 1 { // now every describe operation is permitted, and the error must still name the missing permission
			for _, p := range needed {
				p.operation = kadm.OpDescribe
				s.allow(user, p)
			}
		}
		await(s.t, permission.String(), p.answers("/readyz", 503, "missing ACL: "+permission.String()+" for "+user))
		await(s.t, "a line of the log", p.logged("missing ACL: "+permission.String()))
		s.allow(user, permission)
	}
	s.exact(s.oracle(), exactlyOnce)
	await(s.t, "the commit, without which everything would be read again", func() string {
		if committed, positions := s.committed(), s.positions(); !maps.Equal(committed, positions) {
			return fmt.Sprintf("committed %v, positions %v", committed, positions)
		}
		return ""
	})
	for _, permission := range needed {
		s.revoke(user, permission)
		awaitWithin(s.t, soon, "an idle instance without "+permission.String(),
			p.answers("/readyz", 503, "missing ACL: "+permission.String()))
		s.allow(user, permission)
	}
	s.produce(records[len(records)/2:])
	s.exact(s.oracle(), exactlyOnce)
	return p
}

// rotation changes the password at the brokers first. A client that connects or authenticates again
// is refused until its file has the new password.
func (s *secured) rotation(p *program) {
	const renewed = "renewed-horse-battery"
	s.setPassword(renewed)
	await(s.t, "refused", p.answers("/readyz", 503, "SASL_AUTHENTICATION_FAILED"))
	s.produce([]testbank.Record{opened("rotated")})
	s.files.swap(map[string]string{"scram": renewed})
	s.exact(s.oracle(), exactlyOnce)
	await(s.t, "ready with all permissions and the new password", p.answers("/readyz", 200, ""))
}
