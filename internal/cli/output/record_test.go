package output_test

import (
	"encoding/json"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/cli/clitest"
	"projector/internal/cli/output"
)

// Every byte of a record is shown, and null differs from empty.
func TestARecordIsShownToTheByte(t *testing.T) {
	t.Parallel()
	type whole struct {
		Before int `json:"before"`
		output.Record
		*output.Payload
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
		got, err := json.Marshal(whole{1, output.RecordOf(c.record), output.PayloadOf(c.record)})
		if err != nil {
			t.Fatal(err)
		}
		clitest.Equal(t, string(got), c.want)
	}
	clitest.Equal(t, output.BytesText(nil)+" "+output.BytesText([]byte("x"))+" "+output.BytesText([]byte{0xff}), "null x base64:/w==")
}
