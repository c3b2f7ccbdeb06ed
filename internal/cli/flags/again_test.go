package flags_test

import (
	"reflect"
	"testing"

	"github.com/alecthomas/kong"

	"projector/internal/cli/flags"
)

// TestAgain expects that a proposed command repeats every flag that is not the default.
func TestAgain(t *testing.T) {
	file := flags.FileFlags{ProjectionFile: flags.FileNamed("my rules/points.sql")}
	for _, tt := range []struct {
		of          flags.GroupFlags
		topic, want string
	}{
		{flags.GroupFlags{}, "account-events", ""},
		{flags.GroupFlags{Projection: "account_balance", Group: "account-balance-projector"}, "account-events", ""},
		{flags.GroupFlags{Group: "g2"}, "account-events", " --group=g2"},
		{flags.GroupFlags{Projection: "daily_turnover"}, "bank.events", " --topic=bank.events --projection=daily_turnover"},
		{flags.GroupFlags{Projection: "points", FileFlags: file, Group: "it's"}, "account-events", ` --projection-file='my rules/points.sql' --group='it'\''s'`},
	} {
		if got := tt.of.Again(tt.topic); got != tt.want {
			t.Errorf("%+v of %s: got %q, want %q", tt.of, tt.topic, got, tt.want)
		}
	}
	letters := flags.KafkaFlags{Topic: "t", DLQTopic: "t.dlq"}
	if got := letters.LettersAgain(); got != "" {
		t.Errorf("got %q for the default DLQ topic", got)
	}
	letters.DLQTopic = "dead"
	if got := letters.LettersAgain(); got != " --dlq-topic=dead" {
		t.Errorf("got %q", got)
	}
}

// TestReaderOf expects the flags of a parsed command.
func TestReaderOf(t *testing.T) {
	var cmd struct {
		Repair struct {
			Topic string
			flags.GroupFlags
		} `cmd:""`
	}
	parser, err := kong.New(&cmd)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"repair", "--topic=account-events", "--projection=account_balance", "--group=account-balance-projector"}, ""},
		{[]string{"repair", "--group=g2", "--topic=bank", "--projection-file=points.sql"}, " --topic=bank --projection-file=points.sql --group=g2"},
	} {
		parsed, err := parser.Parse(tt.args)
		if err != nil {
			t.Fatal(err)
		}
		if got := flags.ReaderOf(parsed.Selected()); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.args, got, tt.want)
		}
	}
}

func TestTheDefaultTopicIsNotRepeated(t *testing.T) {
	field, _ := reflect.TypeFor[flags.KafkaFlags]().FieldByName("Topic")
	if got := new(flags.GroupFlags).Again(field.Tag.Get("default")); got != "" {
		t.Errorf("got %q", got)
	}
}
