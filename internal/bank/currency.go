package bank

// RefusedCurrency is a currency the pretended bank does not keep accounts in. The
// demo makes its own database refuse rows in it.
const RefusedCurrency = "BTN"

// digits are the decimals of the currencies this bank knows (ISO 4217).
var digits = map[string]int{"EUR": 2, "USD": 2, "GBP": 2, "CHF": 2, "JPY": 0, "KWD": 3, RefusedCurrency: 2}

// mainCurrency is that of the accounts that mishaps happen to.
const mainCurrency = "EUR"

// shares are the accounts in each currency, of 100.
var shares = []struct {
	currency string
	percent  int
}{{"EUR", 40}, {"USD", 25}, {"GBP", 15}, {"JPY", 8}, {"CHF", 7}, {"KWD", 5}}
