package registry

import (
	"testing"
	"time"
)

// The number of cached schemas is limited, and unknown ids are removed first.
func TestKeptSchemasAreBounded(t *testing.T) {
	var r Resolver
	r.known.Store(&map[uint32]known{})
	for id := range uint32(maxSchemas - 1) {
		r.keep(id, known{})
	}
	r.keep(maxSchemas, known{until: time.Now()})
	r.keep(maxSchemas+1, known{})
	kept := *r.known.Load()
	if _, there := kept[maxSchemas]; there || len(kept) != maxSchemas {
		t.Errorf("%d kept, with the unknown id: %t", len(kept), there)
	}
	for id := range uint32(3 * maxSchemas) {
		r.keep(5000+id, known{})
	}
	if n := len(*r.known.Load()); n != maxSchemas {
		t.Errorf("%d kept", n)
	}
}
