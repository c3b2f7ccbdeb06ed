package e2e_test

import (
	"strings"
	"testing"
)

// TestWrongUsage expects exit status 2 and one line that names what is wrong, with
// no secret in it.
func TestWrongUsage(t *testing.T) {
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
		"scheme of the URL":       {nil, []string{"--database-url=mysql://u:" + secret + "@h/db"}, "--database-url"},
		"port of the URL":         {nil, []string{"--database-url=postgres://u:" + secret + "@h:port/db"}, "--database-url"},
		"URL that is none, env":   {[]string{"DATABASE_URL=postgres://u:" + secret + "@h:5432/db?sslmode=perhaps"}, nil, "DATABASE_URL"},
		"escape in the URL":       {nil, []string{"--database-url=postgres://u:" + secret + "%zz@h:5432/db"}, "--database-url"},
		"keyword form":            {nil, []string{"--database-url=host=h password=" + secret + " port=x"}, "--database-url"},
		"number":                  {nil, []string{"--park-limit=many"}, "--park-limit"},
		"duration":                {nil, []string{"--retry-max=1"}, "--retry-max"},
		"session timeout":         {nil, []string{"--session-timeout=10ms"}, "--session-timeout"},
		"retry order":             {nil, []string{"--retry-initial=2m"}, "--retry-max"},
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
		"stray argument":          {nil, []string{"now"}, "now"},
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
	for _, args := range [][]string{{"--help"}, {"run", "--help"}, {"migrate", "--help"}} {
		if status, stdout, stderr := once(t, nil, args...); status != 0 || !strings.Contains(stdout, "Usage: projector") {
			t.Errorf("%v: exit status %d\n%s%s", args, status, stdout, stderr)
		}
	}
}

func TestOneShotCommandsFailWhenNothingAnswers(t *testing.T) {
	t.Parallel()
	status, _, stderr := once(t, nil, "migrate", "--database-url=postgres://u:s3cr3t@127.0.0.1:1/db")
	if status != 1 || strings.Contains(stderr, "s3cr3t") || len(strings.Split(strings.TrimSpace(stderr), "\n")) != 1 {
		t.Errorf("exit status %d, want 1 and one line: %s", status, stderr)
	}
}
