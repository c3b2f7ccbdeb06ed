package e2e_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrongUsage runs commands with wrong flags. It expects exit status 2 and one line that names
// the error and contains no secret.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-of-the-database"
	tests := map[string]struct {
		env  []string
		args []string
		want string
	}{
		"unknown flag":            {nil, []string{"--no-such-flag"}, "--no-such-flag"},
		"unknown format":          {nil, []string{"--format=xml"}, "--format"},
		"unknown format, env":     {[]string{"EVENT_FORMAT=xml"}, nil, "EVENT_FORMAT"},
		"mapping without a file":  {nil, []string{"--mapping=/no/such/file"}, "--mapping"},
		"mapping, env":            {[]string{"EVENT_MAPPING=/dev/null"}, nil, "line 1"},
		"unit of time":            {nil, []string{"--debezium-time-unit=s"}, "--debezium-time-unit"},
		"unknown currency":        {nil, []string{"--currencies=EUR,EURO"}, "EURO"},
		"unknown projection":      {nil, []string{"--projection=balances"}, "--projection"},
		"scheme of the URL":       {nil, []string{"--database-url=mysql://u:" + secret + "@h/db"}, "--database-url (DATABASE_URL): mysql:// is not PostgreSQL; give a URL such as postgres://"},
		"port of the URL":         {nil, []string{"--database-url=postgres://u:" + secret + "@h:port/db"}, "--database-url"},
		"URL that is none, env":   {[]string{"DATABASE_URL=postgres://u:" + secret + "@h:5432/db?sslmode=perhaps"}, nil, "DATABASE_URL"},
		"escape in the URL":       {nil, []string{"--database-url=postgres://u:" + secret + "%zz@h:5432/db"}, "--database-url"},
		"keyword form":            {nil, []string{"--database-url=host=h password=" + secret + " port=x"}, "--database-url"},
		"number":                  {nil, []string{"--park-limit=many"}, "--park-limit"},
		"duration":                {nil, []string{"--retry-max=1"}, "--retry-max"},
		"session timeout":         {nil, []string{"--session-timeout=10ms"}, "--session-timeout"},
		"retry order":             {nil, []string{"--retry-initial=2m"}, "--retry-max"},
		"no wait":                 {nil, []string{"--retry-max=0s"}, "--retry-max (RETRY_MAX): must be more than 0"},
		"level":                   {nil, []string{"--log-level=loud"}, "loud"},
		"broker":                  {nil, []string{"--brokers=host:port"}, "--brokers"},
		"topic":                   {nil, []string{"--topic=a b"}, "--topic"},
		"DLQ topic":               {nil, []string{"--dlq-topic=a/b"}, "--dlq-topic"},
		"DLQ is the topic":        {nil, []string{"--topic=a", "--dlq-topic=a"}, "--dlq-topic"},
		"SASL without a password": {nil, []string{"--sasl-mechanism=PLAIN", "--sasl-username=u"}, "--sasl-password"},
		"mechanism":               {nil, []string{"--sasl-mechanism=MD5", "--sasl-username=u", "--sasl-password=" + secret}, "--sasl-mechanism"},
		"file that is not there":  {nil, []string{"--tls", "--tls-ca=/no/such/file"}, "--tls-ca"},
		"certificate without TLS": {nil, []string{"--tls-cert=a", "--tls-key=b"}, "--tls"},
		"address":                 {nil, []string{"--listen=8080"}, "--listen"},
		"address, empty":          {nil, []string{"--listen="}, "--listen (LISTEN_ADDR): must not be empty"},
		"readers without a token": {nil, []string{"--read-listen=:8082"}, "--read-listen (READ_LISTEN_ADDR): :8082 can be reached from other machines; give --read-token-file (READ_TOKEN_FILE)"},
		"readers, env":            {[]string{"READ_LISTEN_ADDR=10.1.2.3:8082"}, nil, "--read-token-file"},
		"readers' address":        {nil, []string{"--read-listen=8082"}, "--read-listen (READ_LISTEN_ADDR)"},
		"readers' port":           {nil, []string{"--read-listen=127.0.0.1:99999"}, "--read-listen (READ_LISTEN_ADDR)"},
		"readers' token":          {nil, []string{"--read-listen=127.0.0.1:0", "--read-token-file=/dev/null"}, "--read-token-file (READ_TOKEN_FILE)"},
		"readers of another":      {nil, []string{"--read-listen=127.0.0.1:0", "--projection=daily_turnover"}, "--projection=account_balance"},
		"stray argument":          {nil, []string{"now"}, "an argument is not expected"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := once(t, test.env, append([]string{"run", "--listen=127.0.0.1:0"}, test.args...)...)
			lines := strings.Split(strings.TrimSpace(stderr), "\n")
			last := lines[len(lines)-1]
			if status != 2 || !strings.Contains(last, test.want) {
				t.Errorf("exit status %d, want 2 and a line with %q:\n%s", status, test.want, stderr)
			}
			if len(lines) != 1 || stdout != "" {
				t.Errorf("%d lines on stderr, %d bytes on stdout; want one line", len(lines), len(stdout))
			}
			if strings.Contains(stdout+stderr, secret) {
				t.Error("a password was printed")
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"run", "--help"}, {"migrate", "--help"}} {
		if status, stdout, stderr := once(t, nil, args...); status != 0 || !strings.Contains(stdout, "Usage: projector") {
			t.Errorf("%v: exit status %d\n%s%s", args, status, stdout, stderr)
		}
	}
}

// TestTheWrongServerIsNamed runs commands with a server of another type, a login without rights, a
// wrong password and a wrong mapping. The error must name the flag and the cause.
func TestTheWrongServerIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	const secret = "s3cr3t-of-nobody"
	role, stranger := w.role(secret)
	database, err := url.Parse(w.url)
	if err != nil {
		t.Fatal("the database's URL cannot be read")
	}
	refused, err := url.Parse(stranger)
	if err != nil {
		t.Fatal("the database's URL cannot be read")
	}
	refused.User = url.UserPassword(role, secret+"x")
	refused.RawQuery = "sslmode=prefer"
	w.exec("CREATE SCHEMA fresh")
	w.exec("GRANT USAGE ON SCHEMA fresh TO " + quoted(role))
	mapping := filepath.Join(t.TempDir(), "mapping.yaml")
	if err := os.WriteFile(mapping, []byte("eventTypes:\n  A: B\nfields:\n  sequence: s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	brokers, topic := "--brokers="+w.addrs[0], "--topic="+w.topic
	for name, test := range map[string]struct {
		status   int
		database string
		args     []string
		want     []string
	}{
		"PostgreSQL's port": {1, w.url, []string{"lag", "--brokers=" + database.Host, topic}, []string{"PostgreSQL, not Kafka", "--brokers (KAFKA_BROKERS)"}},
		"migrate without a grant": {1, stranger + "&search_path=fresh", []string{"migrate"}, []string{
			"--database-url (DATABASE_URL)", "42501", "GRANT USAGE, CREATE ON SCHEMA fresh TO", role,
		}},
		"migrate as another than the owner": {1, stranger, []string{"migrate"}, []string{"--database-url (DATABASE_URL)", "42501", "owns the tables"}},
		"wrong password":                    {1, refused.String(), []string{"gaps"}, []string{"--database-url (DATABASE_URL)", "28P01", "check the user and the password"}},
		"all of a mapping":                  {2, w.url, []string{"inspect", brokers, topic, "--mapping=" + mapping}, []string{"--mapping (EVENT_MAPPING)", "line 2", "line 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, stderr := once(t, []string{"DATABASE_URL=" + test.database}, test.args...)
			if status != test.status || strings.Contains(stderr, secret) || strings.Contains(stderr, "refused TLS") {
				t.Errorf("exit status %d, want %d:\n%s", status, test.status, stderr)
			}
			for _, want := range test.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("does not say %q:\n%s", want, stderr)
				}
			}
		})
	}
}

func TestOneShotCommandsFailWhenNothingAnswers(t *testing.T) {
	t.Parallel()
	status, _, stderr := once(t, nil, "migrate", "--database-url=postgres://u:s3cr3t@127.0.0.1:1/db")
	if status != 1 || strings.Contains(stderr, "s3cr3t") || len(strings.Split(strings.TrimSpace(stderr), "\n")) != 1 {
		t.Errorf("exit status %d, want 1 and one line: %s", status, stderr)
	}
}
