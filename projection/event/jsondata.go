package event

// readData judges data by what the event's type needs of it: first its shape, then
// the currency, then the amount, which has no meaning without one.
func (f *jsonFormat) readData(s *jsonScanner, e *jsonEnvelope, ev *Event) *Fault {
	movesFunds := ev.Type == FundsCredited || ev.Type == FundsDebited
	needsCurrency := ev.Type != AccountClosed
	if fault := dataShape(e, movesFunds, needsCurrency); fault != nil {
		return fault
	}
	if !e.payload.currency.isString() { // only AccountClosed may go without
		return nil
	}
	currency, fault := supportedCurrency(s.text(e.payload.currency), f.currencies)
	if fault != nil {
		return fault
	}
	var amount int64
	if movesFunds {
		if amount, fault = validAmount(s.text(e.payload.amount), currency); fault != nil {
			return fault
		}
	}
	ev.Currency, ev.Amount = currency, amount
	return nil
}

// dataShape checks that data, amount and currency are there as far as they are
// needed, and of the right JSON type. An amount in a type that has none is an
// unknown field like any other.
func dataShape(e *jsonEnvelope, needsAmount, needsCurrency bool) *Fault {
	switch {
	case e.data.isObject():
	case !needsCurrency && (e.data.absent() || e.data.isNull()):
		return nil
	case e.data.absent():
		return malformed(fieldData, reasonMissing)
	case e.data.isNull():
		return malformed(fieldData, reasonNull)
	default:
		return malformed(fieldData, "is not an object")
	}
	if needsAmount {
		if fault := amountShape(e.payload.amount); fault != nil {
			return fault
		}
	}
	return currencyShape(e.payload.currency, needsCurrency)
}

// amountShape refuses a JSON number too: it may have gone through a float.
func amountShape(m jsonMember) *Fault {
	switch {
	case m.absent():
		return malformed(fieldAmount, reasonMissing)
	case m.isNull():
		return malformed(fieldAmount, reasonNull)
	case m.isNumber():
		return malformed(fieldAmount, "is a JSON number instead of a decimal string")
	case !m.isString():
		return malformed(fieldAmount, reasonNotString)
	}
	return nil
}

func currencyShape(m jsonMember, needed bool) *Fault {
	switch {
	case !needed && (m.absent() || m.isNull()):
		return nil
	case m.absent():
		return malformed(fieldCurrency, reasonMissing)
	case m.isNull():
		return malformed(fieldCurrency, reasonNull)
	case !m.isString():
		return malformed(fieldCurrency, reasonNotString)
	}
	return nil
}
