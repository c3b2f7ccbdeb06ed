package avro

import (
	"fmt"
	"strings"

	"github.com/twmb/avro"

	"projector/projection/event"
)

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

type logical uint8

const (
	noLogical logical = iota
	logicalDecimal
	logicalMillis
	logicalMicros
	logicalNanos
	logicalOther // a logical type that no field of an event may have
)

// node is a type of a schema. There is only one node for a named type, even if the schema refers to
// it many times. With one node for each reference, the number of nodes could grow exponentially
// with the size of the schema.
type node struct {
	kind    kind
	logical logical
	scale   int      // of a decimal
	size    int      // of a fixed
	symbols []string // of an enum
	name    string   // full name of a record
	names   []string // names of the fields of a record
	inner   []*node  // fields, branches, items or values
}

// graph has the nodes of the named types, by full name. A name refers to a type that is defined before
// it, or else to one that is defined after it. So the types are read in the order of the schema.
type graph struct {
	nodes   map[string]*node
	defined map[string]bool // types whose definition was read
}

func newGraph(root *avro.SchemaNode) (*node, error) {
	g := graph{nodes: map[string]*node{}, defined: map[string]bool{}}
	g.declare(root)
	return g.node(root, "")
}

// declare creates empty nodes of the named types in a part of the schema.
func (g graph) declare(n *avro.SchemaNode) {
	switch n.Type {
	case "record", "error", "enum", "fixed":
		g.nodes[fullName(n)] = new(node)
	}
	for _, child := range children(n) {
		g.declare(child)
	}
}

// children returns the types that a type contains directly.
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

// node returns the node of a type that is used in the given namespace.
func (g graph) node(n *avro.SchemaNode, namespace string) (*node, error) {
	if k, is := primitives[n.Type]; is {
		return &node{kind: k, logical: logicalOf(n.LogicalType, k), scale: n.Scale}, nil
	}
	switch n.Type {
	case "record", "error", "enum", "fixed":
		return g.define(n)
	case "array":
		return g.holding(kindArray, n, namespace)
	case "map":
		return g.holding(kindMap, n, namespace)
	case "union":
		return g.holding(kindUnion, n, namespace)
	}
	return g.named(n.Type, namespace)
}

// holding returns the node of an array, a map or a union.
func (g graph) holding(k kind, n *avro.SchemaNode, namespace string) (*node, error) {
	made := &node{kind: k}
	return made, g.fill(made, n, namespace)
}

// fill creates the nodes of the types that a type contains directly.
func (g graph) fill(made *node, n *avro.SchemaNode, namespace string) error {
	for _, child := range children(n) {
		inner, err := g.node(child, namespace)
		if err != nil {
			return err
		}
		made.inner = append(made.inner, inner)
	}
	return nil
}

// define returns the node of a named type at its definition.
func (g graph) define(n *avro.SchemaNode) (*node, error) {
	name := fullName(n)
	made := g.nodes[name]
	g.defined[name] = true // already now, because the type may contain itself
	switch n.Type {
	case "enum":
		made.kind, made.symbols = kindEnum, n.Symbols
		return made, nil
	case "fixed":
		made.kind, made.size, made.scale = kindFixed, n.Size, n.Scale
		made.logical = logicalOf(n.LogicalType, kindFixed)
		return made, nil
	}
	made.kind, made.name = kindRecord, name
	for i := range n.Fields {
		lift(&n.Fields[i])
		made.names = append(made.names, n.Fields[i].Name)
	}
	return made, g.fill(made, n, namespaceOf(n))
}

// named returns the node of the type to which a name refers. A name without a namespace refers to a
// type of the surrounding namespace, or else to one without a namespace. Of these two, a type that is
// defined before the name comes first.
func (g graph) named(name, namespace string) (*node, error) {
	candidates := []string{strings.TrimPrefix(name, ".")}
	if namespace != "" && !strings.Contains(name, ".") {
		candidates = []string{namespace + "." + name, name}
	}
	for _, before := range []bool{true, false} {
		for _, candidate := range candidates {
			if made, is := g.nodes[candidate]; is && g.defined[candidate] == before {
				return made, nil
			}
		}
	}
	return nil, fmt.Errorf("has no type %q", name)
}

func fullName(n *avro.SchemaNode) string {
	if strings.Contains(n.Name, ".") {
		return strings.TrimPrefix(n.Name, ".")
	}
	if n.Namespace != "" {
		return n.Namespace + "." + n.Name
	}
	return n.Name
}

// namespaceOf returns the namespace for the types that are defined inside a named type.
func namespaceOf(n *avro.SchemaNode) string {
	if i := strings.LastIndexByte(n.Name, '.'); i >= 0 {
		return n.Name[:i]
	}
	return n.Namespace
}

// logicalOf returns the logical type with the given name. A logical type that does not fit the
// underlying type is ignored, as the specification requires.
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

// lift moves a logical type from a field into the field's type, because some producers write it
// there. If the field's type is a union, the logical type moves to the first branch that is not
// null.
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
	for _, props := range []map[string]any{n.Props, f.Props} { // the scale may be in either
		if scale, is := props["scale"].(int64); is && n.LogicalType == "decimal" && n.Scale == 0 {
			n.Scale = int(scale)
		}
	}
}

// place is a node together with what has to be read from its values.
type place struct {
	*node
	branch *event.Branch
	// inner contains the places inside this one. A record has one place for each field, and a union
	// has one for each of its branches. A map has one for each element of branch.Members, and an
	// array has one for its entries. A nil element means that nothing is read there.
	inner []*place
}

// places contains each place only once, because a schema may refer to itself.
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
