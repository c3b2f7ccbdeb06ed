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
	"strings"
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
	// maxSchemas limits how many schemas are stored. A topic usually has one schema for each
	// version of its event types. Above the limit, schemas are removed and fetched again when they
	// are needed.
	maxSchemas = 1000
	// maxKept limits the texts of the stored schemas, in bytes. Compiled schemas need several times
	// as much memory.
	maxKept = 8 << 20
	// fetchWithin is the deadline for fetching a schema and its references. After the deadline, all of
	// them are fetched again, so it is enough for maxReferences with 0.3 s for each. A server that does
	// not answer ends a fetch after requestWithin.
	fetchWithin = time.Minute
	// pingWithin is the deadline for an answer from any of the servers.
	pingWithin = 15 * time.Second
	// unknownFor is how long an id counts as unknown without a new request. Values that are no
	// events may contain the same wrong id many times.
	unknownFor = 10 * time.Second
	// confirmAfter is the pause before an unknown id is requested a second time. The server that
	// answered may be a replica that does not have the producer's new schema yet. After a second
	// request that does not find the id either, no unknown id is requested a second time for the
	// duration confirmEvery. Otherwise values with random ids would delay other values.
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
	beyond   event.Format // for ids that are too large for any registry
	turns    turns

	compiling sync.Mutex // one schema at a time, because compiling needs memory

	answered atomic.Bool // true once awaitAnswer has received an answer, or if no answer is required

	mu          sync.Mutex // held to change known
	unconfirmed time.Time  // when a second request for an unknown id has last not found it either
	readable    uint32     // the last id whose schema was read; 0: none yet
}

// known is the stored result for an id.
type known struct {
	format event.Format
	until  time.Time // zero: no limit
	size   int       // of the texts of the schema and its references, in bytes
}

// New returns the Resolver of a format. The format must be one of Formats. New does not connect
// yet. It returns an *event.MappingError if the mapping in opts is wrong.
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
	r.answered.Store(cfg.ReadOnly)
	return r, nil
}

// Resolve implements event.Resolver. If ctx has ended, the error is context.Cause(ctx), otherwise
// an *Error.
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
	// Several callers may share this fetch, so it must not stop when the context of one caller
	// ends.
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

// awaitAnswer returns an error until the registry has answered once. Before that, a value without a
// header must not become a dead letter, because the configured format may be wrong. A tombstone
// needs no registry.
func (r *Resolver) awaitAnswer(ctx context.Context, value []byte) error {
	if value == nil || r.answered.Load() {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, pingWithin)
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

// maxID is the largest id of a schema, because Confluent's registry uses a Java int. For a larger
// id the registry answers 404 without its own error code, as a server at a wrong URL does.
const maxID = math.MaxInt32

// fetch requests a schema from the registry and stores the result.
func (r *Resolver) fetch(ctx context.Context, id uint32) (event.Format, error) {
	if err := r.turns.await(ctx); err != nil {
		return nil, &Error{fmt.Errorf("schema %d: %w", id, err)}
	}
	s, err := r.client.fetch(ctx, id)
	proven := false
	if refusal(err) != "" && r.answersForOthers(ctx, id) {
		// The schema is requested again, because the first refusal may come from an outage that has
		// ended.
		s, err = r.client.fetch(ctx, id)
		proven = true
	}
	if errors.Is(err, errUnknownID) && r.mayConfirm() {
		s, err = r.confirm(ctx, id)
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

func (r *Resolver) compile(id uint32, s *schema) event.Format {
	r.compiling.Lock()
	defer r.compiling.Unlock()
	return r.records.Format(r.compiler.reader(id, s, &r.wanted))
}

// keepUnreadable stores the result that values with this id cannot be read. The result is valid for
// unknownFor.
func (r *Resolver) keepUnreadable(id uint32, reason string) event.Format {
	r.turns.unreadable()
	format := r.records.Format(unreadable(reason))
	r.keep(id, known{format: format, until: time.Now().Add(unknownFor)})
	return format
}

// answersForOthers reports whether the registry answers for an id other than the given one. It
// first requests the last id whose schema was read. If that fails, it requests the largest possible
// id, or the id below if that is the given one. The registry probably answers this request with its
// own error code for an unknown id.
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

// mayConfirm reports whether an unknown id may be requested a second time now.
func (r *Resolver) mayConfirm() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unconfirmed.IsZero() || time.Since(r.unconfirmed) >= confirmEvery
}

// confirm requests an unknown id a second time, after a pause. Several new ids may be confirmed at
// the same time or one after the other, because a producer often registers several schemas within
// seconds.
func (r *Resolver) confirm(ctx context.Context, id uint32) (schema, error) {
	if err := pace.Sleep(ctx, confirmAfter); err != nil {
		return schema{}, err
	}
	s, err := r.client.fetch(ctx, id)
	if errors.Is(err, errUnknownID) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unconfirmed = time.Now()
	}
	return s, err
}

// keep stores the result for an id. If there is no space, other results are removed. Readers use
// the map without a lock, so the map is never changed but replaced by a new one.
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

// sizeOf returns the total size of the stored texts in bytes.
func sizeOf(all map[uint32]known) int {
	n := 0
	for _, k := range all {
		n += k.size
	}
	return n
}

// evict removes all results that are valid only for a limited time. If there are none, it removes
// one other result, no matter which.
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

// compiler makes readers from schemas of one type.
type compiler struct {
	kind    sr.SchemaType
	compile func(*schema, *event.Branch) (event.Reader, error)
}

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

// maxReason limits the compiler's error text in a dead letter, in bytes.
const maxReason = 300

// reader returns a reader for the values of a schema. If the schema cannot be used, the reader
// reads no value and returns the reason.
func (c *compiler) reader(id uint32, s *schema, wanted *event.Branch) event.Reader {
	if s.kind != c.kind.String() {
		return unreadable(fmt.Sprintf("schema %d is of type %s, not %s", id, s.kind, c.kind))
	}
	r, err := c.compile(s, wanted)
	if err != nil {
		text := err.Error()
		return unreadable(fmt.Sprintf("schema %d cannot be used: %s", id, strings.ToValidUTF8(text[:min(len(text), maxReason)], "")))
	}
	return body{r}
}

// headerLen is the length of the header in bytes: a zero byte and the id.
const headerLen = 5

// body reads the part of a value that follows the header.
type body struct{ event.Reader }

func (b body) Read(value []byte, found *event.Values) string {
	return b.Reader.Read(value[headerLen:], found)
}

// unframed is the reader for values without a header. It returns the reason why they cannot be
// read.
type unframed struct{}

func (unframed) Read(value []byte, _ *event.Values) string {
	const reason = "the value does not begin with a zero byte and the id of a schema"
	if text := bytes.TrimLeft(value, " \t\r\n"); len(text) > 0 && text[0] == '{' {
		return reason + ", it looks like plain JSON: is --format=json (EVENT_FORMAT) meant?"
	}
	return reason
}

// unreadable is the reader for values whose schema cannot be used. It returns the reason.
type unreadable string

func (u unreadable) Read([]byte, *event.Values) string { return string(u) }
