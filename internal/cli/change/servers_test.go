package change

import (
	"context"
	"reflect"
	"testing"

	"projector/internal/cli/events"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
)

// The type everything is a change that has all flags which the approver sets.
type everything struct {
	ReasonFlags
	flags.KafkaFlags
	flags.DatabaseFlags
	events.EventFlags
	flags.OutboxFlags
	flags.LedgerFlags
	output.LogFlags
	output.Flags
}

func (*everything) Action() readmodel.ActionKind            { return "" }
func (*everything) Check() error                            { return nil }
func (*everything) Plan(context.Context, *On) (Plan, error) { return nil, nil }

// TestServersAreThoseOfThePersonWhoApproves shows that lend copies every flag except the topics,
// which are part of the request.
func TestServersAreThoseOfThePersonWhoApproves(t *testing.T) {
	var servers Servers
	marked := 0
	var mark func(v reflect.Value)
	mark = func(v reflect.Value) {
		for i := range v.NumField() {
			switch f := v.Field(i); {
			case !f.CanSet():
			case f.Kind() == reflect.Struct:
				mark(f)
			case f.Kind() == reflect.String:
				f.SetString("mark")
				marked++
			case f.Kind() == reflect.Slice:
				f.Set(reflect.ValueOf([]string{"mark"}))
				marked++
			case f.Kind() == reflect.Bool:
				f.SetBool(true)
				marked++
			default:
				t.Errorf("a flag of type %s", f.Type())
			}
		}
	}
	mark(reflect.ValueOf(&servers).Elem())
	if marked < 25 {
		t.Errorf("only %d flags", marked)
	}
	c := &everything{KafkaFlags: flags.KafkaFlags{Topic: "asked", DLQTopic: "asked.dlq"}}
	servers.lend(c)
	want := servers
	want.Topic, want.DLQTopic = "asked", "asked.dlq"
	got := Servers{c.KafkaFlags, c.DatabaseFlags, c.RegistryFlags, c.OutboxFlags, c.LedgerServerFlags, c.LogFlags, c.Flags}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}
