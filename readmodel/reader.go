package readmodel

import "context"

type readerKey struct{}

// WithReader returns a context for the work of a command or a process. The function flags returns
// the flags that choose its topic, projection and group, each after a space. Defaults are left out.
// It is called only when an error is made that proposes a command. Such an error repeats the flags,
// because without them the command would change another reader, or none.
func WithReader(ctx context.Context, flags func() string) context.Context {
	return context.WithValue(ctx, readerKey{}, flags)
}

// ReaderFlags returns the flags given to WithReader. It returns "" if there are none.
func ReaderFlags(ctx context.Context) string {
	if flags, given := ctx.Value(readerKey{}).(func() string); given {
		return flags()
	}
	return ""
}
