package event

import "context"

// Resolver finds the format that reads a message. For most formats it is always the
// same; where a message names its schema, that may have to be fetched.
type Resolver interface {
	// Resolve returns the format of a message. An error says nothing about the
	// message, only that it cannot be read yet: it is to be tried again, for ever.
	Resolve(ctx context.Context, m Message) (Format, error)
}

// Always is the Resolver of messages that have one format.
func Always(f Format) Resolver { return always{f} }

type always struct{ format Format }

// Resolve implements Resolver.
func (a always) Resolve(context.Context, Message) (Format, error) { return a.format, nil }
