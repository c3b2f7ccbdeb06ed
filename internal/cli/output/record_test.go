package output

import (
	"encoding/json"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Every byte of a record is shown, and null differs from empty.
func TestARecordIsShownToTheByte(t *testing.T) {
	t.Parallel()
	type whole struct {
		Before int `json:"before"`
		Record
		*Payload
	}
	for _, c := range []struct {
		record *kgo.Record
		want   string
	}{
		{&kgo.Record{}, `{"before":1,"headers":[],"key":null,"value":null}`},
		{
			&kgo.Record{Key: []byte("k"), Headers: []kgo.RecordHeader{{Key: "a"}, {Key: "a", Value: []byte{}}, {Key: "b", Value: []byte{0xff}}}},
			`{"before":1,"headers":[{"key":"a","value":null},{"key":"a","value":""},{"key":"b","value":null,"value_base64":"/w=="}],"key":"k","value":null}`,
		},
		{&kgo.Record{Key: []byte{0xff}}, `{"before":1,"headers":[],"key":null,"key_base64":"/w==","value":null}`},
		{&kgo.Record{Value: []byte{}}, `{"before":1,"headers":[],"key":null,"value":""}`},
		{&kgo.Record{Value: []byte{0xff}}, `{"before":1,"headers":[],"key":null,"value":null,"value_base64":"/w=="}`},
	} {
		got, err := json.Marshal(whole{1, RecordOf(c.record), PayloadOf(c.record)})
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if got, want := BytesText(nil)+" "+BytesText([]byte("x"))+" "+BytesText([]byte{0xff}), "null x base64:/w=="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
