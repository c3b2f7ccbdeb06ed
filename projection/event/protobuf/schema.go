package protobuf

import (
	"context"
	_ "embed" // for the files that registries take for granted

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"projector/projection/event"
)

//go:embed builtin/decimal.proto
var decimalProto string

//go:embed builtin/meta.proto
var metaProto string

// builtin are files that a schema may import without a reference, beside Protobuf's own.
var builtin = map[string]string{
	"confluent/type/decimal.proto": decimalProto,
	"confluent/meta.proto":         metaProto,
}

// Schema reads the values that were written with one .proto file. It is safe for
// concurrent use.
type Schema struct{ messages []*message }

// message is a message of the file.
type message struct {
	descriptor protoreflect.MessageDescriptor
	fields     []field
	branch     *event.Branch
	inner      []*message // the messages that are declared in it
}

// field is one that is looked for.
type field struct {
	descriptor protoreflect.FieldDescriptor
	branch     *event.Branch
	fields     []field // of a message: what is looked for in it
}

// fileName is what the schema is called; no import has that name.
const fileName = "<schema>"

// Compile compiles a .proto file, with the files it imports by the paths it has for
// them, and looks up what stands where. The error is about the schema, and lasts.
func Compile(schema string, imports map[string]string, wanted *event.Branch) (*Schema, error) {
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
		return source(path, text)
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(protocompile.ResolverFunc(find)), MaxParallelism: 1,
	}
	// It waits for nothing that could be cancelled.
	files, err := compiler.Compile(context.Background(), fileName)
	if err != nil {
		return nil, err
	}
	counted := counting{mapEntries: len(decoded(schema)) > 0, wanted: wanted}
	return &Schema{counted.messages(files[0].Messages())}, nil
}

// counting is how the messages of a file are numbered. What the compiler makes of a map
// field counts for those who have a compiled file, and for nobody who has the text.
type counting struct {
	mapEntries bool
	wanted     *event.Branch
}

// messages keeps the order of the file, in which values name their message.
func (c counting) messages(declared protoreflect.MessageDescriptors) []*message {
	var all []*message
	for i := range declared.Len() {
		if d := declared.Get(i); c.mapEntries || !d.IsMapEntry() {
			all = append(all, &message{d, newFields(d, c.wanted), c.wanted, c.messages(d.Messages())})
		}
	}
	return all
}

func newFields(in protoreflect.MessageDescriptor, wanted *event.Branch) []field {
	var fields []field
	for i := range wanted.Members {
		m := &wanted.Members[i]
		d := in.Fields().ByName(protoreflect.Name(m.Name))
		if d == nil {
			d = in.Fields().ByJSONName(m.Name)
		}
		if d == nil {
			continue
		}
		f := field{descriptor: d, branch: &m.Branch}
		if d.Message() != nil && !d.IsMap() {
			f.fields = newFields(d.Message(), &m.Branch)
		}
		fields = append(fields, f)
	}
	return fields
}
