package flags

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestCheckBroker(t *testing.T) {
	for address, good := range map[string]bool{
		"localhost:9092": true, "kafka-0.kafka.svc": true, "10.0.0.1:19092": true, "[::1]:9092": true, "::1": true,
		"localhost:99999": false, "host:port:port": false, "a b": false, "": false, ":9092": false,
		"host:": false, "host:0": false, "http://host:9092": false, "user@host:9092": false,
	} {
		if err := checkBroker(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestAListMayHaveSpaceAroundItsCommas(t *testing.T) {
	if got := Items([]string{" a:1", "b:2 ", "", " "}); !slices.Equal(got, []string{"a:1", "b:2"}) {
		t.Errorf("%q", got)
	}
	f := KafkaFlags{Brokers: []string{"a:9092", " b:9092"}, Topic: "t"}
	if _, err := f.Client(slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	for _, blank := range []KafkaFlags{{Brokers: f.Brokers, Topic: " "}, {Brokers: f.Brokers, Topic: "t", DLQTopic: "\t"}} {
		if _, err := blank.Client(slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "is no topic's name; use ") {
			t.Errorf("a blank topic: %v", err)
		}
	}
	f.Brokers = []string{" ", ""}
	if _, err := f.Client(slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "KAFKA_BROKERS): names no broker") {
		t.Errorf("without a broker: %v", err)
	}
}

func TestBrokersReceiveTheVersion(t *testing.T) {
	var flags struct{ KafkaFlags }
	parser, err := kong.New(&flags, kong.Bind(BuildInfo{Version: "v1.2.3+dirty"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(nil); err != nil {
		t.Fatal(err)
	}
	if got := softwareVersion(flags.built.Version); got != "v1.2.3-dirty" {
		t.Errorf("%q", got)
	}
}

// TestTheTimeToReachABroker has a broker that does not answer, and less time than usual, because the
// database took the rest.
func TestTheTimeToReachABroker(t *testing.T) {
	frozen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = frozen.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	address := frozen.Addr().String()
	if _, err := OpenKafka(ctx, []kgo.Opt{kgo.SeedBrokers(address)}); err == nil || !strings.Contains(err.Error(), "no answer from "+address+" within 1s") {
		t.Errorf("error %v", err)
	}
}
