package outbox

import (
	"context"
	"fmt"
	"net"
)

// Place has the addresses of a pipeline. Users need them while the servers keep running.
type Place struct {
	Pipeline string
	Bank     string   // URL of the bank's database
	Page     string   // URL of the projector's status page
	Env      []string // NAME=value, for the projector's commands
	Flags    []string // other flags of the projector
}

// stay starts the projectors again, because the comparison has stopped them. All servers run until
// ctx ends.
func (s *stage) stay(ctx context.Context, report *Report) error {
	pages := make([]string, len(s.pipelines))
	for i := range pages {
		address, err := freeAddress(ctx)
		if err != nil {
			return err
		}
		pages[i] = address
	}
	if err := s.startProjectors(ctx, pages...); err != nil {
		return err
	}
	ended := make(chan *pipeline, len(s.pipelines))
	places := make([]Place, len(s.pipelines))
	for i, p := range s.pipelines {
		go func() { <-p.projector.Ended(); ended <- p }()
		places[i] = Place{
			Pipeline: p.name, Bank: s.postgres.DatabaseURL(p.bankDatabase), Page: "http://" + pages[i] + "/",
			Env:   append(s.addresses(p), "KAFKA_TOPIC="+p.topic, "KAFKA_GROUP="+p.group(), "EVENT_FORMAT=debezium-outbox"),
			Flags: p.flags,
		}
	}
	s.options.Stay(report, places)
	select {
	case <-ctx.Done():
		return s.stopProjectors(context.WithoutCancel(ctx))
	case p := <-ended:
		return fmt.Errorf("the projector of %s: %w", p.topic, p.projector.Stop(ctx))
	}
}

// freeAddress returns an address on which no process listens.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
