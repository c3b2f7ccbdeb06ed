package registry_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/avro"

	"projector/errclass"
	"projector/internal/credential"
	"projector/internal/registry"
	"projector/projection/event"
)

const opened = `{"type":"record","name":"Opened","namespace":"bank","fields":[{"name":"eventId","type":"string"},
	{"name":"eventType","type":"string"},{"name":"accountId","type":"string"},{"name":"version","type":"long"},
	{"name":"occurredAt","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"data","type":%s}]}`

const money = `{"type":"record","name":"Money","namespace":"common","fields":[{"name":"currency","type":"common.Currency"}]}`

const currency = `{"type":"enum","name":"Currency","namespace":"common","symbols":["USD","EUR"]}`

func inline() string {
	return strings.Replace(opened, "%s", strings.Replace(money, `"common.Currency"`, currency, 1), 1)
}

func openedEvent(t *testing.T, id uint32) event.Message {
	t.Helper()
	body, err := avro.MustParse(inline()).Encode(map[string]any{
		"eventId": "e-1", "eventType": "AccountOpened", "accountId": "acc-1", "version": int64(1), "occurredAt": int64(5),
		"data": map[string]any{"currency": "EUR"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return framed(id, body...)
}

func checkOpened(t *testing.T, d event.Decoded) {
	t.Helper()
	if d.Fault != nil || d.Event.ID != "e-1" || d.Event.Currency.Code() != "EUR" {
		t.Errorf("%+v, fault %v", d.Event, d.Fault)
	}
}

func checkMalformed(t *testing.T, d event.Decoded, says string) {
	t.Helper()
	if d.Fault == nil || d.Fault.Class != event.MalformedPayload || d.Identity != event.Unidentified || !strings.Contains(d.Fault.Error(), says) {
		t.Errorf("%+v, fault %v; want malformed, %q", d.Event, d.Fault, says)
	}
}

// A schema is requested only once, also by concurrent callers, and can be used while the registry
// does not answer.
func TestSchemasAreKept(t *testing.T) {
	s := newStub(t)
	s.hold(byID(7), "", inline())
	r := s.resolver(t, event.FormatAvro)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { checkOpened(t, resolve(t, r, openedEvent(t, 7))) })
	}
	all.Wait()
	s.Close()
	checkOpened(t, resolve(t, r, openedEvent(t, 7)))
	if n := s.count(byID(7)); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if _, err := r.Resolve(t.Context(), openedEvent(t, 8)); err == nil {
		t.Error("a schema that is not known is read while the registry is away")
	}
}

func TestReferences(t *testing.T) {
	s := newStub(t)
	s.hold("/subjects/currency/versions/3", "AVRO", currency)
	s.hold("/subjects/money/versions/2", "AVRO", money, reference("common.Currency", "currency", 3))
	s.hold(byID(7), "AVRO", strings.Replace(opened, "%s", `"common.Money"`, 1),
		reference("common.Money", "money", 2), reference("common.Currency", "currency", 3))
	checkOpened(t, resolve(t, s.resolver(t, event.FormatAvro), openedEvent(t, 7)))
	if n := s.count("/subjects/currency/versions/3"); n != 1 {
		t.Errorf("a schema that two refer to was asked for %d times", n)
	}

	s.hold("/subjects/opened/versions/1", "AVRO", strings.Replace(opened, "%s", `"common.Money"`, 1),
		reference("common.Money", "money", 2), reference("common.Currency", "currency", 3))
	s.hold(byID(8), "AVRO", `["common.Money","bank.Opened"]`, reference("common.Money", "money", 2), reference("bank.Opened", "opened", 1))
	second := append([]byte{2}, openedEvent(t, 7).Value[5:]...)
	checkOpened(t, resolve(t, s.resolver(t, event.FormatAvro), framed(8, second...)))

	s.hold("/subjects/cur/versions/1", "PROTOBUF", `syntax = "proto3"; package common; enum Currency { NONE = 0; EUR = 1; }`)
	s.hold("/subjects/data/versions/1", "PROTOBUF", `syntax = "proto3"; import "common/currency.proto"; message Data { common.Currency currency = 1; }`,
		reference("common/currency.proto", "cur", 1))
	s.hold(byID(9), "PROTOBUF", `syntax = "proto3"; import "data.proto"; message Opened { string eventId = 1; string eventType = 2;
		string accountId = 3; int32 version = 4; string occurredAt = 5; Data data = 6; }`, reference("data.proto", "data", 1))
	body := "\x00\x0a\x03e-1\x12\x0dAccountOpened\x1a\x05acc-1\x20\x01\x2a\x142026-01-01T00:00:00Z\x32\x02\x08\x01"
	checkOpened(t, resolve(t, s.resolver(t, event.FormatProtobuf), framed(9, []byte(body)...)))
}

// A schema may refer to a newer version of a schema than one of its references does. As in
// Confluent's registry, the first one of a name counts.
func TestReferencesOfSeveralVersions(t *testing.T) {
	s := newStub(t)
	s.hold("/subjects/money/versions/1", "AVRO", `{"type":"record","name":"Money","namespace":"common","fields":[]}`)
	s.hold("/subjects/money/versions/2", "AVRO", strings.Replace(money, `"common.Currency"`, currency, 1))
	s.hold("/subjects/party/versions/1", "AVRO", `{"type":"record","name":"Party","namespace":"bank","fields":[{"name":"worth","type":"common.Money"}]}`,
		reference("common.Money", "money", 1))
	s.hold(byID(7), "AVRO", strings.Replace(opened, "%s", `"common.Money"`, 1), reference("common.Money", "money", 2), reference("bank.Party", "party", 1))
	checkOpened(t, resolve(t, s.resolver(t, event.FormatAvro), openedEvent(t, 7)))

	s.hold("/subjects/data/versions/1", "PROTOBUF", `syntax = "proto3"; message Data { string amount = 1; }`)
	s.hold("/subjects/data/versions/2", "PROTOBUF", `syntax = "proto3"; message Data { string currency = 1; }`)
	s.hold("/subjects/parties/versions/1", "PROTOBUF", `syntax = "proto3"; import "data.proto"; message Party { Data worth = 1; }`, reference("data.proto", "data", 1))
	s.hold(byID(9), "PROTOBUF", `syntax = "proto3"; import "data.proto"; import "party.proto"; message Opened { string eventId = 1; string eventType = 2;
		string accountId = 3; int32 version = 4; string occurredAt = 5; Data data = 6; Party party = 7; }`, reference("data.proto", "data", 2), reference("party.proto", "parties", 1))
	body := "\x00\x0a\x03e-1\x12\x0dAccountOpened\x1a\x05acc-1\x20\x01\x2a\x142026-01-01T00:00:00Z\x32\x05\x0a\x03EUR"
	checkOpened(t, resolve(t, s.resolver(t, event.FormatProtobuf), framed(9, []byte(body)...)))
}

// Only permanent errors of the message or its schema are reported as malformed.
func TestFaultsOfMessages(t *testing.T) {
	s := newStub(t)
	s.hold(byID(1), "JSON", `{}`)
	s.hold(byID(2), "AVRO", `{"type":"nonsense"}`)
	s.hold(byID(3), "PROTOBUF", `syntax = "proto3";`)
	s.hold(byID(4), "AVRO", `"string"`)
	s.hold(byID(7), "AVRO", inline())
	r := s.resolver(t, event.FormatAvro)
	if d := resolve(t, r, event.Message{}); !d.Tombstone {
		t.Errorf("no value: %+v", d)
	}
	for _, value := range []string{"", "\x00", "\x00\x00\x00\x00", `{"eventId":"e-1"}`, "\x01\x00\x00\x00\x07", "7777777"} {
		checkMalformed(t, resolve(t, r, event.Message{Value: []byte(value)}), "zero byte")
	}
	checkMalformed(t, resolve(t, r, framed(1)), "type JSON")
	checkMalformed(t, resolve(t, r, framed(2)), "cannot be used")
	checkMalformed(t, resolve(t, r, framed(3)), "type PROTOBUF")
	checkMalformed(t, resolve(t, r, framed(4)), "must be a record")
	checkMalformed(t, resolve(t, r, framed(7)), "ends before")
	checkMalformed(t, resolve(t, r, framed(7, 200, 1, 2, 3)), "")
	checkOpened(t, resolve(t, r, openedEvent(t, 7)))
}

// A registry may have types of schemas, and rules of data contracts, that the client's library does not
// know. They are no reason to wait.
func TestTypesAndRulesThatTheLibraryDoesNotKnow(t *testing.T) {
	s := newStub(t)
	rules := object{"domainRules": []object{{"name": "limit", "kind": "NEW", "mode": "NEW"}}}
	s.hold("/subjects/mon%ey/versions/latest", "AVRO", strings.Replace(money, `"common.Currency"`, currency, 1))
	s.hold(byID(7), "AVRO", strings.Replace(opened, "%s", `"common.Money"`, 1), reference("common.Money", "mon%ey", -1))
	s.hold(byID(8), "XML", `<schema/>`)
	for _, answer := range s.schemas {
		answer["ruleSet"] = rules
	}
	s.answerAs(func(path string) http.HandlerFunc {
		if path == "/schemas/types" {
			return status(http.StatusOK, `["AVRO","XML"]`)
		}
		return nil
	})
	r := s.resolver(t, event.FormatAvro)
	checkMalformed(t, resolve(t, r, event.Message{Value: []byte("7")}), "zero byte")
	checkMalformed(t, resolve(t, r, framed(8)), "type XML")
	checkOpened(t, resolve(t, r, openedEvent(t, 7)))
}

// A long error of the compiler is cut between two characters, because it is stored as text.
func TestALongErrorIsText(t *testing.T) {
	s := newStub(t)
	r := s.resolver(t, event.FormatProtobuf)
	for i := range 2 {
		s.hold(byID(7+i), "PROTOBUF", `syntax = "proto3"; import "`+strings.Repeat("x", i)+strings.Repeat("ä", 400)+`.proto";`)
		d := resolve(t, r, framed(uint32(7+i), 0))
		checkMalformed(t, d, "cannot be used")
		if text := d.Fault.Error(); !utf8.ValidString(text) || len(text) > 350 {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
}

// An unknown id is requested a second time, because a replica may lag. If the second request does
// not find it either, the next unknown ids are requested only once, and then count as unknown for a
// while. So invalid ids do not delay other values.
func TestUnknownIDs(t *testing.T) {
	s := newStub(t)
	r := s.resolver(t, event.FormatAvro)
	late := 0
	s.mu.Lock()
	s.seen = func(*http.Request) { // the registry gets id 6 during the first request for it
		if late++; late == 1 {
			s.hold(byID(6), "AVRO", inline())
		}
	}
	s.mu.Unlock()
	checkOpened(t, resolve(t, r, openedEvent(t, 6)))
	began := time.Now()
	for range 3 {
		for id := range uint32(200) {
			checkMalformed(t, resolve(t, r, framed(1000+id)), "has no schema")
		}
	}
	if n := s.count(byID(1000)); n < 2 || n > 2*periods(began) {
		t.Errorf("the first unknown id was asked for %d times", n)
	}
	if n := s.count(byID(1001)); n < 1 || n > 2*periods(began)-1 {
		t.Errorf("the second unknown id was asked for %d times", n)
	}
	if n := s.count(byID(6)); n != 2 {
		t.Errorf("an id that became known was asked for %d times", n)
	}
}

// A producer often registers several new schemas within seconds, and a replica of the registry may
// lag for each of them. So each new id is requested a second time, as long as the second request
// finds the schema. This is also so for ids that are requested at the same time.
func TestSeveralNewIDsOfALateReplica(t *testing.T) {
	s := newStub(t)
	r := s.resolver(t, event.FormatAvro)
	asked := map[string]int{}
	s.mu.Lock()
	s.seen = func(req *http.Request) { // the registry gets each id during the first request for it
		path := strings.TrimPrefix(req.URL.Path, "/api")
		s.mu.Lock()
		asked[path]++
		first := asked[path] == 1
		s.mu.Unlock()
		if first {
			s.hold(path, "AVRO", inline())
		}
	}
	s.mu.Unlock()
	checkOpened(t, resolve(t, r, openedEvent(t, 6)))
	checkOpened(t, resolve(t, r, openedEvent(t, 7)))
	var all sync.WaitGroup
	for _, id := range []uint32{8, 9} {
		all.Go(func() { checkOpened(t, resolve(t, r, openedEvent(t, id))) })
	}
	all.Wait()
}

// The function periods returns how often an id that is unknown or refused can be due since began. It
// is due again after 10 s, which the tests reach only on a slow machine. In each of these periods, it
// can also be requested a second time.
func periods(began time.Time) int { return 1 + int(time.Since(began)/(10*time.Second)) }

func TestRegistryErrorsAreNoFaultOfTheMessage(t *testing.T) {
	large := strings.Repeat("x", 17<<20)
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	tests := map[string]struct {
		fault  http.HandlerFunc
		class  errclass.Class
		reason string
		says   string
	}{
		"unavailable":        {status(http.StatusServiceUnavailable, "secret"), errclass.Retry, "http_503", "status 503"},
		"error code":         {status(http.StatusInternalServerError, `{"error_code":50001,"message":"secret"}`), errclass.Retry, "http_500", "50001"},
		"too many":           {status(http.StatusTooManyRequests, ""), errclass.Retry, "http_429", "429"},
		"password":           {status(http.StatusUnauthorized, `{"error_code":40101}`), errclass.RetryUnready, "http_401", "user and the password"},
		"permission":         {status(http.StatusForbidden, ""), errclass.RetryUnready, "http_403", "403"},
		"no registry at all": {status(http.StatusNotFound, "<html>secret"), errclass.RetryUnready, "http_404", "check the URL"},
		"other path":         {status(http.StatusNotFound, `{"error_code":404}`), errclass.RetryUnready, "http_404", "check the URL"},
		"hangs up":           {hangUp, errclass.Retry, "eof", ""},
		"no JSON":            {status(http.StatusOK, "<html>secret"), errclass.Unknown, "unknown", ""},
		"too large":          {status(http.StatusOK, large), errclass.Unknown, "unknown", ""},
		"other JSON":         {status(http.StatusOK, `{"status":"secret"}`), errclass.Unknown, "unknown", "no schema"},
		"null":               {status(http.StatusOK, `null`), errclass.Unknown, "unknown", "no schema"},
	}
	for name, tt := range tests {
		s := newStub(t)
		s.hold(byID(7), "AVRO", inline())
		s.breakWith(tt.fault)
		r := s.resolver(t, event.FormatAvro)
		f, err := r.Resolve(t.Context(), framed(7))
		var trouble *registry.Error
		if !errors.As(err, &trouble) || f != nil {
			t.Errorf("%s: %v, %v", name, f, err)
			continue
		}
		safe := errclass.Safe(err)
		if errclass.Registry(err) != tt.class || errclass.Reason(err) != tt.reason || !strings.Contains(safe, tt.says) ||
			strings.Contains(safe, "secret") || trouble.Dependency() != registry.Dependency {
			t.Errorf("%s: %s, %s: %s", name, errclass.Registry(err), errclass.Reason(err), safe)
		}
		s.breakWith(nil) // the same resolver works again after the outage
		checkOpened(t, resolve(t, r, openedEvent(t, 7)))
	}
}

// A value without a header is not dead-lettered until the registry has answered for the first time.
func TestUnframedValuesWaitForTheFirstAnswer(t *testing.T) {
	s := newStub(t)
	r := s.resolver(t, event.FormatAvro)
	plain := event.Message{Value: []byte(` {"eventId":"e-1"}`)}
	s.breakWith(status(http.StatusServiceUnavailable, "secret"))
	f, err := r.Resolve(t.Context(), plain)
	var trouble *registry.Error
	if !errors.As(err, &trouble) || f != nil {
		t.Fatalf("%v, %v", f, err)
	}
	for _, says := range []string{"--schema-registry-url (SCHEMA_REGISTRY_URL)", "plain JSON", "--format=json (EVENT_FORMAT)", "503"} {
		if got := errclass.Safe(err); !strings.Contains(got, says) {
			t.Errorf("%q does not say %q", got, says)
		}
	}
	if d := resolve(t, r, event.Message{}); !d.Tombstone {
		t.Errorf("a tombstone waits: %+v", d)
	}
	s.breakWith(status(http.StatusForbidden, ""))
	checkMalformed(t, resolve(t, r, plain), "plain JSON")
	s.Close()
	checkMalformed(t, resolve(t, r, plain), "plain JSON")
}

// A caller stops waiting when its context ends. The other callers continue.
func TestResolveEndsWithItsContext(t *testing.T) {
	s := newStub(t)
	s.hold(byID(7), "AVRO", inline())
	asked, release := make(chan struct{}), make(chan struct{})
	s.mu.Lock()
	s.seen = func(*http.Request) { close(asked); <-release }
	s.mu.Unlock()
	r := s.resolver(t, event.FormatAvro)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { _, err := r.Resolve(ctx, framed(7)); left <- err }()
	<-asked
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("left with %v", err)
	}
	stayed := make(chan event.Decoded)
	go func() { stayed <- resolve(t, r, openedEvent(t, 7)) }()
	close(release)
	checkOpened(t, <-stayed)
}

// The password is read again for each request.
func TestCredentials(t *testing.T) {
	s := newStub(t)
	s.hold(byID(7), "AVRO", inline())
	s.hold(byID(8), "AVRO", inline())
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.breakWith(nil)
	var user, password string
	s.mu.Lock()
	s.seen = func(r *http.Request) { user, password, _ = r.BasicAuth() }
	s.mu.Unlock()
	r := s.resolver(t, event.FormatAvro, func(c *registry.Config) {
		c.Username, c.Password = "u", func() (string, error) { return credential.Secret(file) }
	})
	if _, err := r.Resolve(t.Context(), framed(7)); errclass.Registry(err) != errclass.RetryUnready || errclass.Reason(err) != "file" {
		t.Errorf("without a password: %v", err)
	}
	write("one\n")
	checkOpened(t, resolve(t, r, openedEvent(t, 7)))
	if user != "u" || password != "one" {
		t.Errorf("%q, %q", user, password)
	}
	write("two\n")
	checkOpened(t, resolve(t, r, openedEvent(t, 8)))
	if password != "two" {
		t.Errorf("after the change: %q", password)
	}
}

func TestMappingErrors(t *testing.T) {
	both := event.FieldPath{Path: []string{"id"}}
	_, err := registry.New(event.FormatAvro, event.Options{Mapping: event.Mapping{
		Fields: map[event.Field]event.FieldPath{event.FieldEventID: both, event.FieldVersion: both},
	}}, registry.Config{URLs: []string{"http://127.0.0.1:1"}})
	var conflict *event.MappingError
	if !errors.As(err, &conflict) {
		t.Errorf("%v", err)
	}
	if _, err := registry.New(event.FormatJSON, event.Options{}, registry.Config{}); err == nil {
		t.Error("json needs no registry")
	}
}
