// Package protobuf reads events from Protobuf messages in the schema registry's wire format, with
// the .proto file with which they were written. It does no I/O, because the caller has fetched the
// file and its imports.
//
//	event    Protobuf
//	text     string, enum (the value's name), StringValue
//	version  any integer, Int64Value and its like
//	time     google.protobuf.Timestamp, or RFC 3339 in a string
//	amount   digits in a string, or confluent.type.Decimal
//	data     a message
//
// A oneof that contains the event's data or other fields is read like a field with the value of the
// field that is set.
//
// A field is also found by its JSON name, so accountId finds account_id. In a field without
// presence, an empty text and the first value of an enum count as absent. The number 0 counts as
// absent in an id, a time or a currency, and as 0 in other fields.
package protobuf

import (
	"context"
	"embed"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"projector/projection/event"
)

// builtin contains files that a schema may import without a reference in the registry, because
// Confluent's registry and serializers know them: the files of confluent and of google/type.
// Protobuf's own files may be imported too.
//
//go:embed builtin/confluent builtin/google
var builtin embed.FS

// builtinFile returns the built-in file with the given path of an import.
func builtinFile(path string) (text string, known bool) {
	content, err := builtin.ReadFile("builtin/" + path)
	return string(content), err == nil
}

// Schema reads the values that were written with one .proto file. It is safe for
// concurrent use.
type Schema struct {
	messages []*message
	pool     sync.Pool // contains *[]slot
}

type message struct {
	place *place
	inner []*message // message types that are declared inside it
}

// fileName is the name of the schema for the compiler. It is not a valid path of an import.
const fileName = "<schema>"

// Compile compiles a .proto file and finds the fields that the parameter wanted names. The map
// imports contains the imported files by path. An error is about the schema, so compiling the same
// schema again would fail too.
func Compile(schema string, imports map[string]string, wanted *event.Branch) (*Schema, error) {
	within, err := newLimits(schema, imports)
	if err != nil {
		return nil, err
	}
	find := func(path string) (protocompile.SearchResult, error) {
		text, known := imports[path]
		if path == fileName {
			text, known = schema, true
		}
		if !known {
			text, known = builtinFile(path)
		}
		if !known {
			return protocompile.SearchResult{}, protoregistry.NotFound
		}
		return within.source(path, text)
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(protocompile.ResolverFunc(find)), MaxParallelism: 1,
	}
	// The context is not needed, because the compiler does no I/O.
	files, err := compiler.Compile(context.Background(), fileName)
	if err != nil {
		return nil, err
	}
	declared := declaring{mapEntries: len(decoded(schema)) > 0, wanted: wanted, places: newPlaces()}
	s := &Schema{messages: declared.messages(files[0].Messages())}
	if declared.places.oneofs > maxOneofs {
		return nil, errOneofs
	}
	return s, nil
}

// declaring collects the message types of a file. Values identify a message type by its index in
// the file. The compiler creates a message type for each map field. Such a message type has an
// index if the schema is a compiled file, but not if the schema is .proto text.
type declaring struct {
	mapEntries bool
	wanted     *event.Branch
	places     *places
}

// messages returns the messages in the order of the file, because values name them by index.
func (c declaring) messages(declared protoreflect.MessageDescriptors) []*message {
	var all []*message
	for i := range declared.Len() {
		if d := declared.Get(i); c.mapEntries || !d.IsMapEntry() {
			all = append(all, &message{c.places.of(d, c.wanted), c.messages(d.Messages())})
		}
	}
	return all
}

// source gives a file of the registry to the compiler. The file is .proto text or a compiled file
// in Base64. Confluent's clients for Python, .NET and Go register compiled files, and not every
// registry converts them to text. A .proto text with a declaration is not valid Base64, because it
// contains characters such as a semicolon or a brace.
func (l *limits) source(path, text string) (protocompile.SearchResult, error) {
	compiled := decoded(text)
	if len(compiled) == 0 {
		if err := l.checkText(text); err != nil {
			return protocompile.SearchResult{}, err
		}
		// Until 2024, Confluent's registry wrote the option map_entry into .proto texts, where it
		// is not valid. Without this option, the field is a repeated message with the same
		// encoding.
		text = strings.ReplaceAll(text, "option map_entry = true;", "")
		return protocompile.SearchResult{Source: strings.NewReader(text)}, nil
	}
	var file descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(compiled, &file); err != nil {
		return protocompile.SearchResult{}, fmt.Errorf("%s is neither text nor a compiled file", path)
	}
	if err := l.checkImports(len(file.GetDependency())); err != nil {
		return protocompile.SearchResult{}, err
	}
	file.Name = &path // the path by which other files import it
	// The compiler does not check a compiled file, so it is checked here.
	if _, err := (protodesc.FileOptions{AllowUnresolvable: true}).New(&file, nil); err != nil {
		return protocompile.SearchResult{}, err
	}
	nameFields(file.GetMessageType())
	return protocompile.SearchResult{Proto: &file}, nil
}

// decoded returns the bytes of a Base64 text, or nil if the text is not Base64.
func decoded(text string) []byte {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return raw
}

// nameFields adds the JSON names that are missing in a compiled file.
func nameFields(messages []*descriptorpb.DescriptorProto) {
	for _, m := range messages {
		for _, f := range m.GetField() {
			if f.JsonName == nil {
				f.JsonName = proto.String(jsonName(f.GetName()))
			}
		}
		nameFields(m.GetNestedType())
	}
}

// jsonName returns the JSON name of a field, such as accountId for account_id.
func jsonName(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" && word[0] >= 'a' && word[0] <= 'z' {
			words[i+1] = string(word[0]-'a'+'A') + word[1:]
		}
	}
	return strings.Join(words, "")
}
