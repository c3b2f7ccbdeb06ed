package avro

import (
	"fmt"
	"strings"

	"github.com/twmb/avro"

	"projector/projection/event"
)

// kind is how a value is written.
type kind uint8

const (
	kindNull kind = iota
	kindBoolean
	kindInt
	kindLong
	kindFloat
	kindDouble
	kindBytes
	kindString
	kindEnum
	kindFixed
	kindRecord
	kindArray
	kindMap
	kindUnion
)

var primitives = map[string]kind{
	"null": kindNull, "boolean": kindBoolean, "int": kindInt, "long": kindLong, "float": kindFloat,
	"double": kindDouble, "bytes": kindBytes, "string": kindString,
}

// logical is what the number or the bytes of a value mean.
type logical uint8

const (
	noLogical logical = iota
	logicalDecimal
	logicalMillis
	logicalMicros
	logicalNanos
	logicalOther // no text, no number and no time that an event has
)

// node is one type of a schema. A type that has a name is one node, however often the
// schema refers to it: all references to it together would be exponentially many nodes.
type node struct {
	kind    kind
	logical logical
	scale   int      // of a decimal
	size    int      // of a fixed
	symbols []string // of an enum
	names   []string // of the fields of a record
	inner   []*node  // fields, branches, items or values
}

// graph makes nodes of a parsed schema.
type graph struct {
	definitions map[string]*avro.SchemaNode // by full name
	nodes       map[string]*node            // by full name
}

func newGraph(root *avro.SchemaNode) (*node, error) {
	g := graph{definitions: map[string]*avro.SchemaNode{}, nodes: map[string]*node{}}
	g.define(root)
	return g.node(root, "")
}

// define notes the named types in a part of the schema.
func (g *graph) define(n *avro.SchemaNode) {
	switch n.Type {
	case "record", "error", "enum", "fixed":
		g.definitions[fullName(n)] = n
	}
	for i := range n.Fields {
		lift(&n.Fields[i])
	}
	for _, child := range children(n) {
		g.define(child)
	}
}

// children are the types directly within a type.
func children(n *avro.SchemaNode) []*avro.SchemaNode {
	var all []*avro.SchemaNode
	switch n.Type {
	case "record", "error":
		for i := range n.Fields {
			all = append(all, &n.Fields[i].Type)
		}
	case "union":
		for i := range n.Branches {
			all = append(all, &n.Branches[i])
		}
	case "array":
		all = append(all, n.Items)
	case "map":
		all = append(all, n.Values)
	}
	return all
}

// node returns the node of a type that is within a namespace.
func (g *graph) node(n *avro.SchemaNode, namespace string) (*node, error) {
	if k, is := primitives[n.Type]; is {
		return &node{kind: k, logical: logicalOf(n.LogicalType, k), scale: n.Scale}, nil
	}
	switch n.Type {
	case "record", "error", "enum", "fixed":
		return g.named(fullName(n))
	case "array":
		return g.holding(kindArray, n, namespace)
	case "map":
		return g.holding(kindMap, n, namespace)
	case "union":
		return g.holding(kindUnion, n, namespace)
	}
	name, err := g.resolve(n.Type, namespace)
	if err != nil {
		return nil, err
	}
	return g.named(name)
}

// holding returns the node of a type without a name that holds others.
func (g *graph) holding(k kind, n *avro.SchemaNode, namespace string) (*node, error) {
	made := &node{kind: k}
	return made, g.fill(made, n, namespace)
}

// fill makes the nodes of the types directly within a type.
func (g *graph) fill(made *node, n *avro.SchemaNode, namespace string) error {
	for _, child := range children(n) {
		inner, err := g.node(child, namespace)
		if err != nil {
			return err
		}
		made.inner = append(made.inner, inner)
	}
	return nil
}

// named returns the one node of a type that has a name.
func (g *graph) named(name string) (*node, error) {
	if made, is := g.nodes[name]; is {
		return made, nil
	}
	n := g.definitions[name]
	made := new(node)
	g.nodes[name] = made // the type may be within itself
	switch n.Type {
	case "enum":
		made.kind, made.symbols = kindEnum, n.Symbols
		return made, nil
	case "fixed":
		made.kind, made.size, made.scale = kindFixed, n.Size, n.Scale
		made.logical = logicalOf(n.LogicalType, kindFixed)
		return made, nil
	}
	made.kind = kindRecord
	for i := range n.Fields {
		made.names = append(made.names, n.Fields[i].Name)
	}
	return made, g.fill(made, n, namespaceOf(n))
}

// resolve returns the full name of the type that a name refers to.
func (g *graph) resolve(name, namespace string) (string, error) {
	candidates := []string{strings.TrimPrefix(name, ".")}
	if namespace != "" && !strings.Contains(name, ".") {
		candidates = []string{namespace + "." + name, name}
	}
	for _, candidate := range candidates {
		if _, is := g.definitions[candidate]; is {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("has no type %q", name)
}

// fullName is the name of a type with its namespace.
func fullName(n *avro.SchemaNode) string {
	if strings.Contains(n.Name, ".") {
		return strings.TrimPrefix(n.Name, ".")
	}
	if n.Namespace != "" {
		return n.Namespace + "." + n.Name
	}
	return n.Name
}

// namespaceOf is the namespace of the types that are defined in a named type.
func namespaceOf(n *avro.SchemaNode) string {
	if i := strings.LastIndexByte(n.Name, '.'); i >= 0 {
		return n.Name[:i]
	}
	return n.Namespace
}

// logicalOf is the logical type of that name; noLogical when it does not apply to the type,
// as the specification says.
func logicalOf(name string, k kind) logical {
	switch name {
	case "decimal":
		if k == kindBytes || k == kindFixed {
			return logicalDecimal
		}
	case "timestamp-millis", "timestamp-micros", "timestamp-nanos":
		if k == kindLong {
			return map[string]logical{"timestamp-millis": logicalMillis, "timestamp-micros": logicalMicros, "timestamp-nanos": logicalNanos}[name]
		}
	case "time-micros", "local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos":
		if k == kindLong {
			return logicalOther
		}
	case "date", "time-millis":
		if k == kindInt {
			return logicalOther
		}
	}
	return noLogical
}

// lift moves a logical type that some producers write next to a field's type into it. Of a
// union the first type but null has it.
func lift(f *avro.SchemaField) {
	name, is := f.Props["logicalType"].(string)
	if !is {
		return
	}
	n := &f.Type
	for i := range f.Type.Branches {
		if n = &f.Type.Branches[i]; n.Type != "null" {
			break
		}
	}
	if n.LogicalType == "" {
		n.LogicalType = name
	}
	if scale, is := f.Props["scale"].(int64); is && n.LogicalType == "decimal" && n.Scale == 0 {
		n.Scale = int(scale)
	}
}

// place is a node at which something is wanted.
type place struct {
	*node
	branch *event.Branch
	// inner are by the node's fields or branches, those of a map by the branch's members, and of
	// an array what is wanted of each entry; nil: nothing is wanted there.
	inner []*place
}

// places has each place once.
type places map[struct {
	node   *node
	branch *event.Branch
}]*place

func (all places) of(n *node, wanted *event.Branch) *place {
	key := struct {
		node   *node
		branch *event.Branch
	}{n, wanted}
	if p, is := all[key]; is {
		return p
	}
	p := &place{node: n, branch: wanted}
	all[key] = p
	switch n.kind {
	case kindRecord:
		p.inner = make([]*place, len(n.inner))
		for i, name := range n.names {
			if m := memberOf(wanted, name); m != nil {
				p.inner[i] = all.of(n.inner[i], &m.Branch)
			}
		}
	case kindUnion:
		p.inner = make([]*place, len(n.inner))
		for i := range n.inner {
			p.inner[i] = all.of(n.inner[i], wanted)
		}
	case kindMap:
		p.inner = make([]*place, len(wanted.Members))
		for i := range wanted.Members {
			p.inner[i] = all.of(n.inner[0], &wanted.Members[i].Branch)
		}
	case kindArray:
		if wanted.Entries != nil {
			p.inner = []*place{all.of(n.inner[0], wanted.Entries)}
		}
	case kindNull, kindBoolean, kindInt, kindLong, kindFloat, kindDouble, kindBytes, kindString, kindEnum, kindFixed:
	}
	return p
}

func memberOf(wanted *event.Branch, name string) *event.Member {
	for i := range wanted.Members {
		if wanted.Members[i].Name == name {
			return &wanted.Members[i]
		}
	}
	return nil
}
