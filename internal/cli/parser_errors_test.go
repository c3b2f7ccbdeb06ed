package cli_test

import (
	"bytes"
	"cmp"
	"strings"
	"testing"

	"projector/internal/cli"
	"projector/internal/cli/flags"
)

// TestAMisplacedSecretIsNotShown shows that an error does not repeat a secret in a wrong place, and
// that it names the flag, the allowed values or --help.
func TestAMisplacedSecretIsNotShown(t *testing.T) {
	const secret = "Zq7secret"
	for _, test := range []struct {
		args []string
		env  string
		want string
	}{
		{[]string{"run", "--sasl-mechanism=" + secret}, "", "SCRAM-SHA-512"},
		{[]string{"run"}, "KAFKA_SASL_MECHANISM", "SCRAM-SHA-512"},
		{[]string{"run", "--tls=" + secret}, "", "--tls: bool value must be true, 1, yes, false, 0 or no"},
		{[]string{"run"}, "KAFKA_TLS", "(from KAFKA_TLS)"},
		{[]string{"run", secret}, "", "--help"},
		{[]string{secret}, "", "--help"},
		{[]string{"dlq", "list", secret}, "", "--help"},
		{[]string{"run", "--database-password-file=" + secret}, "", "--database-password-file (DATABASE_PASSWORD_FILE): must be a file"},
		{[]string{"run", "--sasl-mechanism=PLAIN", "--sasl-username=u", "--sasl-password-file=" + secret}, "", "--sasl-password-file"},
		{[]string{"run", "--sasl-mechanism=OAUTHBEARER", "--sasl-token-file=" + secret}, "", "--sasl-token-file"},
		{[]string{"run", "--read-listen=127.0.0.1:0", "--read-token-file=" + secret}, "", "--read-token-file"},
	} {
		t.Run(strings.Join(test.args, " ")+test.env, func(t *testing.T) {
			t.Setenv("DATABASE_URL", "") // a password in this URL would be refused first
			if test.env != "" {
				t.Setenv(test.env, secret)
			}
			var out, stderr bytes.Buffer
			status := cli.Main(t.Context(), test.args, &out, &stderr, flags.BuildInfo{})
			said := out.String() + stderr.String()
			if status != 2 || strings.Contains(strings.ToLower(said), strings.ToLower(secret)) || !strings.Contains(said, test.want) {
				t.Errorf("status %d: %s", status, said)
			}
		})
	}
}

// TestAWrongVariable expects the same advice as for the typed flag, and the name of the variable.
func TestAWrongVariable(t *testing.T) {
	for variable, want := range map[string]string{
		"RETRY_MAX":        `projector: --retry-max: must be a duration, such as 30s or 24h, not "7d" (from RETRY_MAX)`,
		"PARK_LIMIT":       `projector: --park-limit: must be a whole number, such as 17, not "7d" (from PARK_LIMIT)`,
		"BREAKER_SHARE":    `projector: --breaker-share: must be a number, such as 0.5, not "7d" (from BREAKER_SHARE)`,
		"PROJECTOR_OUTPUT": `projector: --output (PROJECTOR_OUTPUT): must be one of "text","json", not "7d"`,
		"PROJECTOR_ACTION": `projector: --action (PROJECTOR_ACTION): must be one of "replay","discard","skip","unskip","fetch","open","rebuild",` +
			`"position_set","pause","resume","prune","four_eyes", not "7d"`,
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "7d")
			command := cmp.Or(map[string]string{"PROJECTOR_OUTPUT": "lag", "PROJECTOR_ACTION": "audit"}[variable], "run")
			var out, stderr bytes.Buffer
			if status := cli.Main(t.Context(), []string{command}, &out, &stderr, flags.BuildInfo{}); status != 2 || stderr.String() != want+"\n" {
				t.Errorf("status %d: %s", status, stderr.String())
			}
		})
	}
}

// TestANegativeNumberIsNotProposed shows that a negative number after a space is refused like one
// after an equals sign. The parser reads it as a short flag, and would propose a value that no flag
// accepts. A text may begin with a dash.
func TestANegativeNumberIsNotProposed(t *testing.T) {
	for args, want := range map[string]string{
		"position set --offset -1": "projector: --offset: must not be negative\n",
		"run --breaker-share -0.5": "projector: --breaker-share: must not be negative\n",
		"run --retry-max -1s":      "projector: --retry-max: must not be negative\n",
		"dlq list --account -1":    "projector: --account: expected string value but got \"-1\" (short flag); perhaps try --account=\"-1\"?\n",
	} {
		var out, stderr bytes.Buffer
		if status := cli.Main(t.Context(), strings.Fields(args), &out, &stderr, flags.BuildInfo{}); status != 2 || stderr.String() != want {
			t.Errorf("%s: status %d: %s", args, status, stderr.String())
		}
	}
}
