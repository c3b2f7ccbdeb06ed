package event_test

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"projector/projection/event"
)

// FuzzSeries shows that each entry of an array has exactly one outcome. The outcome is the same if
// the entry is decoded alone. A value that is not JSON gives exactly one fault.
func FuzzSeries(f *testing.F) {
	for _, seed := range []string{
		`{"id":7,"at":1767225600000,"lines":[{"account":"a","seq":1,"side":"C","cents":5},{"account":"b","seq":1,"side":"D","cents":5}]}`,
		`{"id":7,"lines":[]}`, `{"id":7,"lines":[1,null,"x",[],{}]}`, `{"lines":[{"a":1,"a":1}]}`, `{"lines":[{}`, `[{}]`, `{"lines":"[{}]"}`, `{"lines":[{},]}`, "",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		m := postingMapping("lines")
		if whole {
			m = postingMapping()
			m.Envelope.Entries = []string{}
			m.Fields[event.FieldEventID], m.Fields[event.FieldOccurredAt] = path("id"), path("at")
		}
		format, err := event.New(event.FormatJSON, event.Options{Mapping: m})
		if err != nil {
			t.Fatal(err)
		}
		message := event.Message{Value: data}
		var all []*event.Decoded
		var numbers []int32
		event.DecodeEach(format, message, func(entry int32) *event.Decoded {
			all, numbers = append(all, new(event.Decoded)), append(numbers, entry)
			return all[len(all)-1]
		})
		if len(all) == 0 || len(all) > event.MostEntries {
			t.Fatalf("%d outcomes", len(all))
		}
		valid := jsontext.Value(bytes.Clone(data)).IsValid()
		for i, d := range all {
			if numbers[i] == 0 && (len(all) > 1 || d.Fault == nil && !d.Tombstone) || !valid && numbers[i] > 0 {
				t.Fatalf("entry %d of %d: %+v", numbers[i], len(all), d)
			}
			if d.Fault == nil && !d.Skip && !d.Tombstone && d.Identity != event.Identified {
				t.Fatalf("entry %d: %+v", numbers[i], d)
			}
			var alone event.Decoded
			if message.Entry = numbers[i]; message.Entry == 0 {
				continue
			}
			format.Decode(message, &alone)
			if alone.Event != d.Event || (alone.Fault == nil) != (d.Fault == nil) {
				t.Fatalf("entry %d alone: %+v, want %+v", numbers[i], alone, d)
			}
		}
	})
}
