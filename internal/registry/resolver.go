package registry

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"golang.org/x/sync/singleflight"

	"projector/internal/pace"
	"projector/projection/event"
	"projector/projection/event/avro"
	"projector/projection/event/protobuf"
)

const (
	// maxSchemas bounds what is stored. A topic has a schema for each change of its
	// events; with more, some are fetched again.
	maxSchemas = 1000
	// maxKept bounds the texts of what is stored, in bytes. In memory it is several times that.
	maxKept = 8 << 20
	// fetchWithin bounds a fetch with all references.
	fetchWithin = 15 * time.Second
	// unknownFor is how long an id counts as unknown without asking: values that
	// are no events at all may name any id, many times.
	unknownFor = 10 * time.Second
	// confirmAfter is when an unknown id is asked for once more: a registry's replica
	// may lag the one at which the producer has registered its schema. It is done
	// at most every confirmEvery, so that values with random ids hold nobody up.
	confirmAfter = time.Second
	confirmEvery = 10 * time.Second
)

// Resolver is the event.Resolver of one format. It is safe for concurrent use.
type Resolver struct {
	records  *event.Records
	wanted   event.Branch
	compiler compiler
	client   *client
	flights  singleflight.Group
	known    atomic.Pointer[map[uint32]known]
	noHeader event.Format
	beyond   event.Format // of ids that no registry has
	turns    turns

	compiling sync.Mutex // one schema after the other: it needs memory

	answered atomic.Bool // the registry has answered since the start, or need not

	mu        sync.Mutex // held to change known
	confirmed time.Time  // when an id was confirmed last
	readable  uint32     // an id whose schema was read last; 0: none yet
}

// known is what is known of an id.
type known struct {
	format event.Format
	until  time.Time // zero: for ever
	size   int       // of the schema's text, in bytes
}

// New returns the Resolver of the format of that name, one of Formats. Nothing is
// connected to yet. An *event.MappingError is about the mapping in the options.
func New(format string, opts event.Options, cfg Config) (*Resolver, error) {
	c, ok := compilers[format]
	if !ok {
		return nil, fmt.Errorf("format %q needs no schema registry", format)
	}
	records, err := event.NewRecords(opts)
	if err != nil {
		return nil, err
	}
	cl, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	r := &Resolver{records: records, wanted: records.Tree(), compiler: c, client: cl}
	r.noHeader = records.Format(unframed{})
	r.beyond = records.Format(unreadable(fmt.Sprintf("the value begins with a schema id above %d, which no schema registry has", maxID)))
	r.known.Store(&map[uint32]known{})
	r.answered.Store(cfg.LooksOnly)
	return r, nil
}

// Resolve implements event.Resolver. Its errors are *Error, or the cause of ctx.
func (r *Resolver) Resolve(ctx context.Context, m event.Message) (event.Format, error) {
	if len(m.Value) < headerLen || m.Value[0] != 0 {
		if err := r.awaitAnswer(ctx, m.Value); err != nil {
			return nil, err
		}
		return r.noHeader, nil
	}
	id := binary.BigEndian.Uint32(m.Value[1:headerLen])
	if id > maxID {
		return r.beyond, nil
	}
	if k, ok := (*r.known.Load())[id]; ok && (k.until.IsZero() || time.Now().Before(k.until)) {
		return k.format, nil
	}
	// All callers that wait for the id share this fetch, so it does not end with one caller's ctx.
	flight := r.flights.DoChan(strconv.FormatUint(uint64(id), 10), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchWithin)
		defer cancel()
		return r.fetch(ctx, id)
	})
	select {
	case result := <-flight:
		format, _ := result.Val.(event.Format)
		return format, result.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// awaitAnswer returns an error until the registry has answered once: a value without a
// header is no dead letter before that, for it may be the settings that are wrong. A
// tombstone needs no registry.
func (r *Resolver) awaitAnswer(ctx context.Context, value []byte) error {
	if value == nil || r.answered.Load() {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	if err := r.client.ping(within); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &Error{fmt.Errorf("%s: %w", unframed{}.Read(value, nil), err)}
	}
	r.answered.Store(true)
	return nil
}

// maxID is the largest id that a registry can have: for Confluent's an id is an int of Java,
// and its answer to a larger one cannot be distinguished from that of a wrong URL.
const maxID = math.MaxInt32

// fetch asks the registry for a schema and stores the answer.
func (r *Resolver) fetch(ctx context.Context, id uint32) (event.Format, error) {
	if err := r.turns.await(ctx); err != nil {
		return nil, &Error{fmt.Errorf("schema %d: %w", id, err)}
	}
	s, err := r.client.fetch(ctx, id)
	proven := false
	if refusal(err) != "" && r.answersForOthers(ctx, id) {
		// Ask again, because an outage that has ended may have caused the first refusal.
		s, err = r.client.fetch(ctx, id)
		proven = true
	}
	if errors.Is(err, errUnknownID) && r.mayConfirm() {
		if err = pace.Sleep(ctx, confirmAfter); err == nil {
			s, err = r.client.fetch(ctx, id)
		}
	}
	switch {
	case errors.Is(err, errUnknownID):
		return r.keepUnreadable(id, fmt.Sprintf("the schema registry has no schema %d", id)), nil
	case proven && refusal(err) != "":
		return r.keepUnreadable(id, fmt.Sprintf("schema %d cannot be used: %s", id, refusal(err))), nil
	case err != nil:
		return nil, &Error{fmt.Errorf("schema %d: %w", id, err)}
	}
	r.turns.restart()
	format := r.compile(id, &s)
	r.keep(id, known{format: format, size: s.size()})
	return format, nil
}

// compile makes the format of a schema.
func (r *Resolver) compile(id uint32, s *schema) event.Format {
	r.compiling.Lock()
	defer r.compiling.Unlock()
	return r.records.Format(r.compiler.reader(id, s, &r.wanted))
}

// keepUnreadable notes for a while that values of an id cannot be read.
func (r *Resolver) keepUnreadable(id uint32, reason string) event.Format {
	r.turns.unreadable()
	format := r.records.Format(unreadable(reason))
	r.keep(id, known{format: format, until: time.Now().Add(unknownFor)})
	return format
}

// answersForOthers reports whether the registry answers for an id that is not this one: for
// one it has answered for before, or for one that it hardly has.
func (r *Resolver) answersForOthers(ctx context.Context, id uint32) bool {
	r.mu.Lock()
	readable := r.readable
	r.mu.Unlock()
	if readable != 0 && readable != id && r.client.answers(ctx, readable) {
		return true
	}
	unlikely := uint32(maxID)
	if id == unlikely {
		unlikely--
	}
	return r.client.answers(ctx, unlikely)
}

// mayConfirm reports whether it is time to ask a second time for an unknown id.
func (r *Resolver) mayConfirm() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.confirmed) >= confirmEvery {
		r.confirmed = now
		return true
	}
	return false
}

// keep stores what is known of an id, and evicts others if there is no space. Readers use the
// map without a lock, so it is replaced and never changed.
func (r *Resolver) keep(id uint32, k known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.until.IsZero() {
		r.readable = id
	}
	next := maps.Clone(*r.known.Load())
	for len(next) >= maxSchemas || len(next) > 0 && sizeOf(next)+k.size > maxKept {
		evict(next)
	}
	next[id] = k
	r.known.Store(&next)
}

// sizeOf is the size of the texts of all that is stored.
func sizeOf(all map[uint32]known) int {
	n := 0
	for _, k := range all {
		n += k.size
	}
	return n
}

// evict forgets ids that were unknown, else any one.
func evict(all map[uint32]known) {
	before := len(all)
	maps.DeleteFunc(all, func(_ uint32, k known) bool { return !k.until.IsZero() })
	if len(all) < before {
		return
	}
	for id := range all {
		delete(all, id)
		return
	}
}

// compiler turns schemas of one kind into readers.
type compiler struct {
	kind    sr.SchemaType
	compile func(*schema, *event.Branch) (event.Reader, error)
}

// compilers are by the name of their format.
var compilers = map[string]compiler{
	event.FormatAvro:     {sr.TypeAvro, compileAvro},
	event.FormatProtobuf: {sr.TypeProtobuf, compileProtobuf},
}

// Formats lists the names of the formats that need a registry, in alphabetical order.
func Formats() []string { return []string{event.FormatAvro, event.FormatProtobuf} }

func compileAvro(s *schema, wanted *event.Branch) (event.Reader, error) {
	texts := make([]string, len(s.references))
	for i, r := range s.references {
		texts[i] = r.text
	}
	return avro.Compile(s.text, texts, wanted)
}

func compileProtobuf(s *schema, wanted *event.Branch) (event.Reader, error) {
	imports := make(map[string]string, len(s.references))
	for _, r := range s.references {
		imports[r.name] = r.text
	}
	return protobuf.Compile(s.text, imports, wanted)
}

// maxReason bounds what a dead letter says of a schema that cannot be used.
const maxReason = 300

// reader returns what reads the values of a schema; one that reads nothing and says
// why when the schema cannot be used.
func (c *compiler) reader(id uint32, s *schema, wanted *event.Branch) event.Reader {
	if s.kind != c.kind {
		return unreadable(fmt.Sprintf("schema %d is of type %s, not %s", id, s.kind, c.kind))
	}
	r, err := c.compile(s, wanted)
	if err != nil {
		text := err.Error()
		return unreadable(fmt.Sprintf("schema %d cannot be used: %s", id, text[:min(len(text), maxReason)]))
	}
	return body{r}
}

// headerLen is the length of what precedes the encoded message: a zero byte and the id.
const headerLen = 5

// body reads what follows the header.
type body struct{ event.Reader }

func (b body) Read(value []byte, found *event.Values) string {
	return b.Reader.Read(value[headerLen:], found)
}

// unframed reads nothing: the value has no header.
type unframed struct{}

func (unframed) Read(value []byte, _ *event.Values) string {
	const reason = "the value does not begin with a zero byte and the id of a schema"
	if text := bytes.TrimLeft(value, " \t\r\n"); len(text) > 0 && text[0] == '{' {
		return reason + ", it looks like plain JSON: is --format=json (EVENT_FORMAT) meant?"
	}
	return reason
}

// unreadable reads nothing and says why.
type unreadable string

func (u unreadable) Read([]byte, *event.Values) string { return string(u) }
