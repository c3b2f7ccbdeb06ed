package bank

import (
	"encoding/json"
	"slices"
)

// mishap turns the life of an account as it should be into the records that are
// delivered of it.
type mishap struct {
	happen   func(g *generator, life []fact) []Record
	currency string // of its account, when it must be a special one
}

var ordinary = mishap{happen: func(_ *generator, life []fact) []Record { return records(life) }}

// mishaps are all there are, each for one account.
func mishaps(refused bool) []mishap {
	list := []mishap{
		{happen: late},
		{happen: lateBeforeWrongCurrency},
		{happen: missing},
		{happen: missingFirst},
		{happen: poisoned(numberAmount)},
		{happen: poisoned(unknownType)},
		{happen: poisoned(preciseAmount)},
		{happen: poisoned(negativeAmount)},
		{happen: poisoned(inventedCurrency)},
		{happen: poisoned(otherCurrency)},
		{happen: overflown},
		{happen: corrected},
		{happen: conflicting},
		{happen: cutOff},
		{happen: tombstoned},
	}
	if refused {
		list = append(list, mishap{happen: ordinary.happen, currency: RefusedCurrency})
	}
	return list
}

// turn is where in a life its mishap happens: near the end, with some events behind.
func turn(life []fact) int { return min(len(life)*4/5, len(life)-4) }

// late delivers an event behind three of its successors: a hole that heals.
func late(_ *generator, life []fact) []Record {
	k := turn(life)
	return records(slices.Concat(life[:k], life[k+1:k+4], life[k:k+1], life[k+4:]))
}

// lateBeforeWrongCurrency is late, and the event that waits for the late one
// cannot be applied when its turn comes: the hole moves.
func lateBeforeWrongCurrency(g *generator, life []fact) []Record {
	otherCurrency(&life[turn(life)+1])
	return late(g, life)
}

// missing never delivers an event: a hole that stays.
func missing(_ *generator, life []fact) []Record {
	return records(slices.Delete(life, turn(life), turn(life)+1))
}

// missingFirst never delivers the first event.
func missingFirst(_ *generator, life []fact) []Record { return records(life[1:]) }

// poisoned spoils one event, which leaves a hole.
func poisoned(spoil func(*fact)) func(*generator, []fact) []Record {
	return func(_ *generator, life []fact) []Record {
		spoil(&life[turn(life)])
		return records(life)
	}
}

func numberAmount(f *fact) {
	f.EventType, f.Data = credited, &data{Amount: json.Number("10.25"), Currency: mainCurrency}
}

func unknownType(f *fact) { f.EventType = "AccountFrozen" }

func preciseAmount(f *fact) {
	f.EventType, f.Data = credited, &data{Amount: "10.255", Currency: mainCurrency}
}

func negativeAmount(f *fact) {
	f.EventType, f.Data = debited, &data{Amount: "-10.25", Currency: mainCurrency}
}

func inventedCurrency(f *fact) {
	f.EventType, f.Data = credited, &data{Amount: "10.25", Currency: "ZZZ"}
}

func otherCurrency(f *fact) {
	f.EventType, f.Data = credited, &data{Amount: "10.25", Currency: "USD"}
}

// overflown credits two amounts that each fit 64-bit minor units, but not together.
func overflown(_ *generator, life []fact) []Record {
	for _, i := range []int{1, turn(life)} {
		life[i].EventType, life[i].Data = credited, &data{Amount: "50000000000000000.00", Currency: mainCurrency}
	}
	return records(life)
}

// corrected spoils an event and delivers it again, put right, under a new id, when
// others wait behind it: the hole heals.
func corrected(g *generator, life []fact) []Record {
	k := turn(life)
	right := life[k]
	right.EventID = g.id()
	preciseAmount(&life[k])
	return records(slices.Insert(life, k+3, right))
}

// conflicting delivers two events under one version.
func conflicting(g *generator, life []fact) []Record {
	k := turn(life)
	twin := life[k]
	twin.EventID = g.id()
	return records(slices.Insert(life, k+1, twin))
}

// cutOff delivers half of an event before the whole.
func cutOff(_ *generator, life []fact) []Record {
	list := records(life)
	k := turn(life)
	half := Record{Key: list[k].Key, Value: list[k].Value[:len(list[k].Value)/2]}
	return slices.Insert(list, k, half)
}

// tombstoned deletes the account's key in a log that is not compacted: it means nothing.
func tombstoned(_ *generator, life []fact) []Record {
	list := records(life)
	return slices.Insert(list, turn(life), Record{Key: list[0].Key})
}
