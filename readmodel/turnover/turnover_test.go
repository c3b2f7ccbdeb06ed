package turnover_test

import (
	"fmt"
	"testing"

	"projector/readmodel/readmodeltest"
	"projector/readmodel/turnover"
)

func TestTurnoverIsOfTheEventsUTCDay(t *testing.T) {
	pool := readmodeltest.OpenPool(t)
	f := readmodeltest.NewFeeder(t, pool, turnover.Definition(), partition)
	f.Feed(
		eventAs("o", "AccountOpened", "a", 1, noon, `{"currency":"EUR"}`),
		eventAs("1", "FundsCredited", "a", 2, "2026-01-01T23:59:59.999999999Z", eur("10.5")),
		eventAs("2", "FundsDebited", "b", 9, "2026-01-02T00:30:00+01:00", eur("0.01")),
		eventAs("3", "FundsCredited", "a", 4, "2026-01-02T00:00:00Z", eur("3")),
		eventAs("4", "FundsCredited", "a", 5, "1969-12-31T23:59:59Z", `{"amount":"7","currency":"JPY"}`),
		eventAs("5", "FundsCredited", "a", 6, "1969-12-31T00:00:00Z", `{"amount":"1","currency":"JPY"}`),
		eventAs("c", "AccountClosed", "a", 7, noon, "{}"),
		"", "garbage", eventAs("6", "FundsCredited", "a", 8, noon, eur("x")),
	)
	same(t, "turnover", turnoverOf(t, pool),
		"1969-12-31 JPY 8 0 2\n2026-01-01 EUR 10.50 0.01 2\n2026-01-02 EUR 3.00 0.00 1")
	same(t, "outcomes", f.Outcomes(), "7 0 1 2")
	f.Feed(eventAs("2", "FundsDebited", "b", 9, "2026-01-02T00:30:00+01:00", eur("0.01")),
		eventAs("7", "FundsDebited", "b", 1, noon, eur("1")), eventAs("7", "FundsDebited", "b", 1, noon, eur("1")),
		eventAs("2", "Nonsense", "b", 9, noon, "{}"), eventAs("o", "AccountOpened", "a", 1, noon, `{"currency":"EUR"}`))
	same(t, "turnover", turnoverOf(t, pool),
		"1969-12-31 JPY 8 0 2\n2026-01-01 EUR 10.50 1.01 3\n2026-01-02 EUR 3.00 0.00 1")
	same(t, "outcomes", f.Outcomes(), "8 4 1 2")
}

func TestTurnoverBeyond64Bits(t *testing.T) {
	pool := readmodeltest.OpenPool(t)
	f := readmodeltest.NewFeeder(t, pool, turnover.Definition(), partition)
	for n := range 2 {
		f.Feed(eventAs(fmt.Sprint("a", n), "FundsCredited", "a", 1, noon, `{"amount":"9223372036854775807","currency":"JPY"}`),
			eventAs(fmt.Sprint("b", n), "FundsCredited", "a", 1, noon, `{"amount":"9223372036854775807","currency":"JPY"}`))
	}
	same(t, "turnover", turnoverOf(t, pool), "2026-01-01 JPY 36893488147419103228 0 4")
}
