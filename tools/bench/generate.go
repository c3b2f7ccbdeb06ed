package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/projection/event"
)

// seed is fixed so that every run of a workload has the same events.
const seed = 42

// change is one event and the resulting state of its account.
type change struct {
	account int
	version int32
	cents   int64 // amount of the event; 0 for an opening, negative for a debit
	balance int64 // balance of the account after the event, in cents
	at      time.Time
	id      [36]byte // event id
}

func (c *change) kind() string {
	switch {
	case c.cents > 0:
		return "FundsCredited"
	case c.cents < 0:
		return "FundsDebited"
	}
	return "AccountOpened"
}

// amount returns the amount in the event, which has no sign.
func (c *change) amount() int64 { return max(c.cents, -c.cents) }

// generator makes a workload's events, which are the same in each run. It also computes the
// expected result: the last version and balance of every account.
type generator struct {
	w        *workload
	rng      *rand.Rand
	zipf     *rand.Zipf
	made     int
	versions []int32
	balances []int64
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newGenerator(w *workload) *generator {
	rng := rand.New(rand.NewPCG(seed, uint64(len(w.name)))) //nolint:gosec // G404: not for secrets
	g := &generator{w: w, rng: rng, versions: make([]int32, w.accounts), balances: make([]int64, w.accounts)}
	if w.shape == zipf {
		g.zipf = rand.NewZipf(rng, 1.1, 1, uint64(w.accounts-1)) //nolint:gosec // G115: positive
	}
	for i := range g.versions {
		g.versions[i] = w.firstVersion() - 1
	}
	return g
}

func (g *generator) next(c *change) {
	n := g.pick()
	g.versions[n]++
	c.account, c.version = n, g.versions[n]
	c.at = epoch.Add(time.Duration(g.made) * time.Millisecond)
	c.cents = 0
	if c.version > 1 {
		c.cents = 1 + g.rng.Int64N(100_000)
		if g.rng.IntN(1000) < 450 {
			c.cents = -c.cents
		}
	}
	g.balances[n] += c.cents
	c.balance = g.balances[n]
	uuid(g.rng, &c.id)
	g.made++
}

// pick chooses the account of the next event. If every account occurs once, their order differs
// from the order of the ids, as for new customers of a bank.
func (g *generator) pick() int {
	switch g.w.shape {
	case once:
		const prime = 2_654_435_761
		return int(uint64(g.made) * prime % uint64(g.w.accounts)) //nolint:gosec // G115: below accounts
	case zipf:
		return int(g.zipf.Uint64()) //nolint:gosec // G115: below accounts
	case uniform:
	}
	return g.rng.IntN(g.w.accounts)
}

// accountID returns the id of an account. It has 12 bytes.
func accountID(n int) string { return fmt.Sprintf("acc-%08d", n) }

func appendAccountID(b []byte, n int) []byte {
	b = append(b, "acc-"...)
	for limit := 10_000_000; limit > 1 && n < limit; limit /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, int64(n), 10)
}

// appendJSON appends the event in the default format. It has about 250 bytes.
func (c *change) appendJSON(b []byte) []byte {
	cents := c.amount()
	b = append(append(b, `{"eventId":"`...), c.id[:]...)
	b = append(append(b, `","eventType":"`...), c.kind()...)
	b = appendAccountID(append(b, `","accountId":"`...), c.account)
	b = strconv.AppendInt(append(b, `","version":`...), int64(c.version), 10)
	b = c.at.AppendFormat(append(b, `,"occurredAt":"`...), "2006-01-02T15:04:05.000Z")
	b = append(append(b, `","correlationId":"`...), c.id[:]...) // the event id also serves as correlation id
	b = append(b, `","data":{`...)
	if cents != 0 {
		b = strconv.AppendInt(append(b, `"amount":"`...), cents/100, 10)
		b = append(b, '.', byte('0'+cents/10%10), byte('0'+cents%10), '"', ',')
	}
	return append(b, `"currency":"EUR"}}`...)
}

// uuid writes a random UUID as text.
func uuid(rng *rand.Rand, into *[36]byte) {
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], rng.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], rng.Uint64())
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	at := 0
	for i, b := range raw {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			into[at] = '-'
			at++
		}
		hex.Encode(into[at:at+2], []byte{b})
		at += 2
	}
}

// fingerprintQuery computes one text from all rows of a read model. The text also changes if the
// values of two accounts are swapped.
const fingerprintQuery = `
SELECT concat_ws(' ', count(*), coalesce(sum(version), 0), coalesce(sum(version * n), 0),
       coalesce(sum(cents), 0), coalesce(sum(cents * n), 0))
FROM (SELECT version, trunc(balance * 100)::bigint AS cents, substr(account_id, 5)::bigint AS n
      FROM account_balance) AS accounts`

// fingerprint returns the expected result of fingerprintQuery after all events made so far.
func (g *generator) fingerprint() string {
	return accountSums(g.versions, g.balances)
}

// accountSums returns how many accounts have events, and the sums of two numbers of each account,
// without and with the account's number as a factor. The first number is 0 for an account without
// events.
func accountSums[N int32 | int64](events []N, cents []int64) string {
	rows := 0
	var s bigSums
	for i, n := range events {
		if n == 0 {
			continue
		}
		rows++
		s.add(0, int64(n), 1)
		s.add(1, int64(n), int64(i))
		s.add(2, cents[i], 1)
		s.add(3, cents[i], int64(i))
	}
	return fmt.Sprint(rows, " ", &s.of[0], " ", &s.of[1], " ", &s.of[2], " ", &s.of[3])
}

// bigSums are sums that may exceed 64 bits.
type bigSums struct {
	of           [4]big.Int
	term, factor big.Int
}

// add adds the product of a number and a factor to the sum at the index i.
func (s *bigSums) add(i int, n, factor int64) {
	s.term.SetInt64(n)
	s.of[i].Add(&s.of[i], s.term.Mul(&s.term, s.factor.SetInt64(factor)))
}

// decodeCmd measures the decode limit. The limit is how fast the topic can be fetched and decoded
// if nothing else is done with the events.
type decodeCmd struct {
	Brokers    []string
	Topic      string
	Partitions int
	Events     int
}

func (c *decodeCmd) Run(ctx context.Context, std *streams) error {
	return serve(std, func() (answer, error) {
		start := time.Now()
		if err := c.decodeAll(ctx); err != nil {
			return answer{}, err
		}
		return answer{Seconds: time.Since(start).Seconds(), Events: c.Events}, nil
	})
}

func (c *decodeCmd) decodeAll(ctx context.Context) error {
	format := event.NewJSON(event.Options{FirstVersion: 1})
	// The channel holds at most one fetched chunk for each core, because any consumer limits its
	// read-ahead.
	work := make(chan []*kgo.Record, runtime.GOMAXPROCS(0))
	var faults atomic.Int64
	var decoding sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		decoding.Go(func() {
			var d event.Decoded
			for records := range work {
				for _, r := range records {
					format.Decode(event.Message{Key: r.Key, Value: r.Value}, &d)
					if d.Fault != nil {
						faults.Add(1)
					}
				}
			}
		})
	}
	err := fetchAll(ctx, c.Brokers, c.Topic, c.Partitions, c.Events, func(records []*kgo.Record) { work <- records })
	close(work)
	decoding.Wait()
	if n := faults.Load(); err == nil && n > 0 {
		return fmt.Errorf("%d events could not be decoded", n)
	}
	return err
}
