package dlq

import (
	"testing"
	"time"

	"projector/projection"
	"projector/projection/event"
)

func TestStatusOf(t *testing.T) {
	eur, _ := event.CurrencyByCode("EUR")
	usd, _ := event.CurrencyByCode("USD")
	known := projection.Account{Version: 5, Balance: 100, Currency: eur, LastEventID: "e-5"}
	unknown := projection.NewAccount(1)
	credit := func(version int64) event.Decoded {
		return event.Decoded{Identity: event.Identified, Event: event.Event{
			ID: "e", AccountID: "acc", Version: version, Type: event.TypeNamed("FundsCredited"), Amount: 1, Currency: eur,
		}}
	}
	broken := func(version int64) event.Decoded {
		d := credit(version)
		d.Fault = &event.Fault{Class: event.InvalidAmount, Reason: "x"}
		return d
	}
	dollars := credit(6)
	dollars.Event.Currency = usd
	cases := map[string]struct {
		class   event.Class
		decoded event.Decoded
		account projection.Account
		header  int64 // version that the account had received when the dead letter was written; 0: not known
		cut     bool
		want    Status
	}{
		"unreadable":                     {class: event.MalformedPayload, account: unknown, want: Open},
		"unreadable, by another program": {class: event.MalformedPayload, account: known, header: 6, want: Open},
		"gap, passed":                    {class: event.VersionGap, decoded: credit(5), account: known, want: Resolved},
		"gap, long passed":               {class: event.VersionGap, decoded: credit(1), account: known, want: Resolved},
		"gap, its turn":                  {class: event.VersionGap, decoded: credit(6), account: known, want: Ready},
		"gap, behind a gap":              {class: event.VersionGap, decoded: credit(7), account: known, want: Waiting},
		"first of a new account":         {class: event.VersionGap, decoded: credit(1), account: unknown, want: Ready},
		"second of a new account":        {class: event.VersionGap, decoded: credit(2), account: unknown, want: Waiting},
		"poison, its turn":               {class: event.InvalidAmount, decoded: broken(6), account: known, want: Open},
		"poison, passed":                 {class: event.InvalidAmount, decoded: broken(4), account: known, want: Resolved},
		"poison, behind a gap":           {class: event.InvalidAmount, decoded: broken(9), account: known, want: Waiting},
		"poison, supported meanwhile":    {class: event.UnsupportedCurrency, decoded: credit(6), account: known, want: Ready},
		"mismatch, still":                {class: event.CurrencyMismatch, decoded: dollars, account: known, want: Open},
		"mismatch, passed":               {class: event.CurrencyMismatch, decoded: dollars, account: projection.Account{Version: 6}, want: Resolved},
		"conflict":                       {class: event.VersionConflict, decoded: credit(5), account: known, want: Open},
		"conflict, long passed":          {class: event.VersionConflict, decoded: credit(2), account: known, want: Open},
		"refused by the database":        {class: event.RejectedByDatabase, decoded: credit(6), account: known, want: Open},
		"refused, passed":                {class: event.RejectedByDatabase, decoded: credit(5), account: known, want: Resolved},
		"cut, its turn":                  {class: event.VersionGap, account: known, header: 6, cut: true, want: Open},
		"cut, passed":                    {class: event.VersionGap, account: known, header: 5, cut: true, want: Resolved},
		"cut, behind a gap":              {class: event.VersionGap, account: known, header: 8, cut: true, want: Waiting},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := Entry{Class: c.class, Truncated: c.cut}
			if c.header != 0 {
				e.AccountID, e.EventID, e.Received = "acc", "e", &c.header
			}
			_, version, _ := e.Subject(&c.decoded)
			if got := e.StatusOf(&c.decoded, c.account.ReplayStatusOf(version, &c.decoded)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	e := Entry{
		DLQPartition: 1, DLQOffset: 10, Class: event.VersionGap, AccountID: "acc", FailedAt: at,
		Topic: "t", Partition: 2, Offset: 20,
	}
	cases := map[string]struct {
		filter Filter
		want   bool
	}{
		"empty":               {Filter{}, true},
		"class":               {Filter{Classes: []event.Class{event.InvalidAmount, event.VersionGap}}, true},
		"another class":       {Filter{Classes: []event.Class{event.InvalidAmount}}, false},
		"account":             {Filter{Account: "acc"}, true},
		"another account":     {Filter{Account: "ac"}, false},
		"since then":          {Filter{Since: at}, true},
		"since later":         {Filter{Since: at.Add(1)}, false},
		"until then":          {Filter{Until: at}, true},
		"until before":        {Filter{Until: at.Add(-1)}, false},
		"partition":           {Filter{Partitions: []int32{2}, Offsets: []int64{19, 20}}, true},
		"another offset":      {Filter{Partitions: []int32{2}, Offsets: []int64{19}}, false},
		"DLQ place":           {Filter{DLQPartitions: []int32{1}, DLQOffsets: []int64{10}}, true},
		"another DLQ place":   {Filter{DLQPartitions: []int32{2}, DLQOffsets: []int64{10}}, false},
		"all but one matches": {Filter{Account: "acc", Classes: []event.Class{event.VersionGap}, DLQOffsets: []int64{11}}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.filter.Matches(&e); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
