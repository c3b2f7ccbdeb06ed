package accounts

import "testing"

func TestRedeliveryIsNoticedAndItsEndToo(t *testing.T) {
	type chunk struct{ records, duplicates, lookedUp, times int }
	cases := []struct {
		name   string
		chunks []chunk
		in     bool
	}{
		{"too few accounts looked up", []chunk{{512, 512, 500, 1}}, false},
		{"many", []chunk{{512, 512, 500, 2}}, true},
		{"duplicates of accounts in memory", []chunk{{512, 512, 0, 100}}, false},
		{"a tenth is new", []chunk{{100, 90, 100, 6}}, true},
		{"more than a tenth is new", []chunk{{100, 89, 100, 100}}, false},
		{"something new in between", []chunk{{512, 512, 500, 1}, {512, 0, 0, 1}, {512, 512, 500, 1}}, false},
		{"nothing folded", []chunk{{0, 0, 5000, 1}}, false},
		{"a little new behind", []chunk{{512, 512, 512, 1}, {512, 0, 512, 15}}, true},
		{"much new behind", []chunk{{512, 512, 512, 1}, {512, 0, 512, 16}}, false},
		{"new ones with duplicates in between", []chunk{{512, 512, 512, 1}, {512, 0, 512, 15}, {512, 512, 0, 1}, {512, 0, 512, 15}}, true},
		{"duplicates again", []chunk{{512, 512, 512, 1}, {512, 0, 512, 16}, {512, 512, 512, 1}}, true},
	}
	for _, c := range cases {
		var r redelivery
		for _, k := range c.chunks {
			for range k.times {
				r.applied(k.records, k.duplicates, k.lookedUp)
			}
		}
		if r.in != c.in {
			t.Errorf("%s: a redelivery %t, want %t", c.name, r.in, c.in)
		}
	}
}
