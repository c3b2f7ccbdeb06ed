// Package protobuf reads events from Protobuf messages in the schema registry's wire format, by the
// .proto file that they were written with. It does no I/O: the caller has fetched the file and its
// imports.
//
//	event    Protobuf
//	text     string, enum (the value's name), StringValue
//	version  any integer, Int64Value and its like
//	time     google.protobuf.Timestamp, or RFC 3339 in a string
//	amount   digits in a string, or confluent.type.Decimal
//	data     a message
//
// A name may be a field's JSON name: accountId finds account_id. In a field without presence, an
// empty text and an enum's first value count as absent, and a missing number counts as 0.
package protobuf

import (
	"context"
	_ "embed" // for the files of builtin
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

//go:embed builtin/decimal.proto
var decimalProto string

//go:embed builtin/meta.proto
var metaProto string

// builtin has files that a schema may import without a reference, besides those of Protobuf.
var builtin = map[string]string{
	"confluent/type/decimal.proto": decimalProto,
	"confluent/meta.proto":         metaProto,
}

// Schema reads the values that were written with one .proto file. It is safe for
// concurrent use.
type Schema struct {
	messages []*message
	pool     sync.Pool // of *[]slot
}

// message is a message of the file.
type message struct {
	place *place
	inner []*message // declared in it
}

// fileName is the name of the schema. No import can have it.
const fileName = "<schema>"

// Compile compiles a .proto file and its imports, which are by path, and finds the wanted fields. An
// error is about the schema: a repetition would fail too.
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
			text, known = builtin[path]
		}
		if !known {
			return protocompile.SearchResult{}, protoregistry.NotFound
		}
		return within.source(path, text)
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(protocompile.ResolverFunc(find)), MaxParallelism: 1,
	}
	// Compiling does no I/O that could be cancelled.
	files, err := compiler.Compile(context.Background(), fileName)
	if err != nil {
		return nil, err
	}
	declared := declaring{mapEntries: len(decoded(schema)) > 0, wanted: wanted, types: types{}}
	return &Schema{messages: declared.messages(files[0].Messages())}, nil
}

// declaring numbers the messages of a file. The message that the compiler makes for a map field has
// a number in a compiled file, and none in a text.
type declaring struct {
	mapEntries bool
	wanted     *event.Branch
	types      types
}

// messages returns the messages in the order of the file, because values name them by index.
func (c declaring) messages(declared protoreflect.MessageDescriptors) []*message {
	var all []*message
	for i := range declared.Len() {
		if d := declared.Get(i); c.mapEntries || !d.IsMapEntry() {
			all = append(all, &message{newPlace(c.types, d, c.wanted), c.messages(d.Messages())})
		}
	}
	return all
}

// source returns a file of a registry to the compiler. The file is .proto text, or a compiled file
// in Base64: Confluent's clients for Python, .NET and Go register that, and not every registry
// converts it. A .proto text is never Base64, because it has spaces.
func (l *limits) source(path, text string) (protocompile.SearchResult, error) {
	compiled := decoded(text)
	if len(compiled) == 0 {
		if err := l.checkText(text); err != nil {
			return protocompile.SearchResult{}, err
		}
		// Until 2024 Confluent's registry wrote map_entry into texts, which is not valid
		// there. Without it the field is a repeated message, which has the same bytes.
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
	file.Name = &path // imports name it so
	// The compiler does not check a compiled file.
	if _, err := (protodesc.FileOptions{AllowUnresolvable: true}).New(&file, nil); err != nil {
		return protocompile.SearchResult{}, err
	}
	nameFields(file.GetMessageType())
	return protocompile.SearchResult{Proto: &file}, nil
}

// decoded returns the bytes of a Base64 text, or nil.
func decoded(text string) []byte {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return raw
}

// nameFields adds JSON names, which a compiled file may lack.
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

// jsonName returns accountId for account_id.
func jsonName(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" && word[0] >= 'a' && word[0] <= 'z' {
			words[i+1] = string(word[0]-'a'+'A') + word[1:]
		}
	}
	return strings.Join(words, "")
}
