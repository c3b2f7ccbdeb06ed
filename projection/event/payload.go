package event

// readData judges data by what the event's type needs of it: first its shape, then
// the currency, then the amount, which has no meaning without one.
func (f *decoder) readData(r *reading, ev *Event) *Fault {
	if fault := firstFault(r.documentFault, r.dataFault); fault != nil {
		return fault
	}
	movesMoney, needsCurrency := ev.Type.MovesMoney(), !ev.Type.meaning().dataOptional
	if fault := f.dataShape(&r.found, movesMoney, needsCurrency); fault != nil {
		return fault
	}
	if !r.found[FieldCurrency].isString() { // of a type that may go without
		return nil
	}
	currency, fault := supportedCurrency(f.places[FieldCurrency].name, r.text(&r.found[FieldCurrency]), f.currencies)
	if fault != nil {
		return fault
	}
	var amount int64
	if movesMoney {
		amount, fault = validAmount(f.places[FieldAmount].name, r.text(&r.found[FieldAmount]), currency)
		if fault != nil {
			return fault
		}
	}
	ev.Currency, ev.Amount = currency, amount
	return nil
}

// dataShape checks that data, amount and currency are there as far as they are
// needed, and of the right type. An amount in a type that has none is an
// unknown field like any other.
func (f *decoder) dataShape(found *members, needsAmount, needsCurrency bool) *Fault {
	data, name := &found[FieldData], f.places[FieldData].name
	switch {
	case data.isObject():
	case !needsCurrency && (data.absent() || data.isNull()):
		return nil
	case data.absent():
		return malformed(name, reasonMissing)
	case data.isNull():
		return malformed(name, reasonNull)
	default:
		return malformed(name, "is not an object")
	}
	if needsAmount {
		if fault := amountShape(f.places[FieldAmount].name, &found[FieldAmount]); fault != nil {
			return fault
		}
	}
	return currencyShape(f.places[FieldCurrency].name, &found[FieldCurrency], needsCurrency)
}

// amountShape refuses a number too: it may have gone through a float.
func amountShape(name string, m *value) *Fault {
	switch {
	case m.absent():
		return malformed(name, reasonMissing)
	case m.isNull():
		return malformed(name, reasonNull)
	case m.isNumber():
		return malformed(name, "is a number instead of a decimal string")
	case !m.isString():
		return malformed(name, reasonNotString)
	}
	return nil
}

func currencyShape(name string, m *value, needed bool) *Fault {
	switch {
	case !needed && (m.absent() || m.isNull()):
		return nil
	case m.absent():
		return malformed(name, reasonMissing)
	case m.isNull():
		return malformed(name, reasonNull)
	case !m.isString():
		return malformed(name, reasonNotString)
	}
	return nil
}
