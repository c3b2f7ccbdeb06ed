package registry

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/sr"

	"projector/projection/event"
	"projector/projection/event/avro"
	"projector/projection/event/protobuf"
)

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

// headerLen is what stands before the encoded message: a zero byte and the id.
const headerLen = 5

// body reads what follows the header.
type body struct{ event.Reader }

// Read implements event.Reader.
func (b body) Read(value []byte, found *event.Values) string {
	return b.Reader.Read(value[headerLen:], found)
}

// unreadable reads nothing and says why.
type unreadable string

// Read implements event.Reader.
func (u unreadable) Read([]byte, *event.Values) string { return string(u) }
