package event

// readData reads and checks the data that the event's type needs. The currency is checked before
// the amount, because the currency decides how many decimals the amount may have.
func (f *decoder) readData(r *reading, ev *Event) *Fault {
	if fault := f.dataFault(r); fault != nil {
		return fault
	}
	movesMoney, needsCurrency := ev.Type.MovesMoney(), !ev.Type.meaning().dataOptional
	code, fault := f.dataShape(r, movesMoney, needsCurrency)
	if fault != nil || code == nil {
		return fault
	}
	currency, fault := f.supportedCurrency(code)
	if fault != nil {
		return fault
	}
	var amount int64
	if movesMoney {
		if amount, fault = f.readAmount(r, currency); fault != nil {
			return fault
		}
	}
	ev.Currency, ev.Amount = currency, amount
	return nil
}

func (f *decoder) dataFault(r *reading) *Fault { return firstFault(r.documentFault, r.dataFault) }

const noData = "{}"

// readCustomData sets the event's data for a custom projection. The data may be any JSON object.
func (f *decoder) readCustomData(r *reading, ev *Event) *Fault {
	if fault := f.dataFault(r); fault != nil {
		return fault
	}
	switch data := &r.found[FieldData]; {
	case data.absent() || data.isNull():
		ev.Data = noData
	case data.isObject():
		ev.Data = keep(data.raw, data.raw)
	default:
		return malformed(f.places[FieldData].name, reasonNotObject)
	}
	return nil
}

// dataShape checks that the data, the amount and the currency have the right types. It also checks
// that an amount or a currency that the event needs is present. It returns the currency's code. If
// the currency is absent and not needed, the code is nil. If the event's type has no amount, an
// amount in the data is ignored like any unknown field.
func (f *decoder) dataShape(r *reading, needsAmount, needsCurrency bool) (code []byte, fault *Fault) {
	data, name := &r.found[FieldData], f.places[FieldData].name
	switch {
	case data.isObject():
	case !needsCurrency && (data.absent() || data.isNull()):
		return nil, nil
	case data.absent():
		return nil, f.places[FieldData].missingValue(data)
	case data.isNull():
		return nil, malformed(name, reasonNull)
	default:
		return nil, malformed(name, reasonNotObject)
	}
	if needsAmount && !r.numberRead {
		if fault := f.amountShape(r); fault != nil {
			return nil, fault
		}
	}
	p, m := &f.places[FieldCurrency], &r.found[FieldCurrency]
	if !needsCurrency && p.kind == inDocument && (m.absent() || m.isNull()) {
		return nil, nil
	}
	_, code, fault = f.text(r, FieldCurrency)
	if fault != nil && !needsCurrency && p.isAbsent(fault) { // in a header or the key
		return nil, nil
	}
	return code, fault
}

func (f *decoder) supportedCurrency(code []byte) (Currency, *Fault) {
	var upper [3]byte
	switch {
	case f.currency == CurrencyLower && len(code) == len(upper):
		for i, c := range code {
			if c < 'a' || c > 'z' {
				c = 'a' - 1 // gives a character that no code contains
			}
			upper[i] = c - 'a' + 'A'
		}
		code = upper[:]
	case f.currency == CurrencyNumeric:
		c, _ := CurrencyByNumber(code, f.places[FieldCurrency].written)
		code = append(upper[:0], c.Code()...)
	}
	c, ok := f.currencies.Lookup(string(code))
	if !ok {
		return Currency{}, &Fault{Class: UnsupportedCurrency, Field: f.places[FieldCurrency].name, Reason: "is not in the set of supported currencies"}
	}
	return c, nil
}
