package event_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"projector/projection/event"
)

// These reasons explain differences between the project's table and the table of the JDK. All other
// rows must be the same.
const (
	historic     = "historic, list three: the JDK keeps withdrawn codes"
	noMinorUnits = "no minor units: no amount can be exact"
)

// notInOurs contains the currencies of the JDK that are not in list one of ISO 4217, or that have
// no minor units there.
var notInOurs = map[string]string{
	"ADP": historic, "AFA": historic, "ATS": historic, "AYM": historic, "AZM": historic, "BEF": historic,
	"BGL": historic, "BYB": historic, "BYR": historic, "CSD": historic, "CYP": historic, "DEM": historic,
	"EEK": historic, "ESP": historic, "FIM": historic, "FRF": historic, "GHC": historic, "GRD": historic,
	"GWP": historic, "IEP": historic, "ITL": historic, "LTL": historic, "LUF": historic, "LVL": historic,
	"MGF": historic, "MRO": historic, "MTL": historic, "MZM": historic, "NLG": historic, "PTE": historic,
	"ROL": historic, "RUR": historic, "SDD": historic, "SIT": historic, "SKK": historic, "SRG": historic,
	"STD": historic, "TMM": historic, "TPE": historic, "TRL": historic, "VEB": historic, "VEF": historic,
	"YUM": historic, "ZMK": historic, "ZWD": historic, "ZWN": historic, "ZWR": historic,

	"ANG": "replaced by XCG on 2025-03-31 (amendment 176)",
	"BGN": "Bulgaria uses EUR since 2026-01-01 (amendment 180)",
	"CUC": "withdrawn in 2021 (amendment 178)",
	"HRK": "Croatia uses EUR since 2023-01-01 (amendment 174)",
	"SLL": "replaced by SLE, withdrawn at the end of 2023 (amendment 175)",
	"USS": "withdrawn in 2014",
	"ZWL": "replaced by ZWG in 2024 (amendment 177)",

	"XAG": noMinorUnits, "XAU": noMinorUnits, "XBA": noMinorUnits, "XBB": noMinorUnits, "XBC": noMinorUnits,
	"XBD": noMinorUnits, "XDR": noMinorUnits, "XFO": noMinorUnits, "XFU": noMinorUnits, "XPD": noMinorUnits,
	"XPT": noMinorUnits, "XSU": noMinorUnits, "XTS": noMinorUnits, "XUA": noMinorUnits, "XXX": noMinorUnits,
}

// notInJDK contains the currencies of list one that JDK 17.0.15 does not have.
var notInJDK = map[string]string{
	"UYW": "fund code since 2018, never taken into JDK 17",
	"XAD": "fund code of the Arab Monetary Fund since 2025-05-12 (amendment 179), younger than this JDK",
}

// tsvRow is a line of the project's table or of the JDK's table.
type tsvRow struct {
	numeric string
	digits  int
}

func readTSV(t *testing.T, path string) map[string]tsvRow {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]tsvRow)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		digits, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		if _, twice := rows[fields[0]]; twice {
			t.Fatalf("%s lists %s twice", path, fields[0])
		}
		rows[fields[0]] = tsvRow{fields[1], digits}
	}
	return rows
}

// The JDK's table was written by DumpCurrencies.java in the same folder.
func TestCurrenciesAgreeWithTheJDK(t *testing.T) {
	jdk := readTSV(t, "../../testdata/iso4217/jdk-currencies.tsv")
	ours := readTSV(t, "iso4217.tsv")
	if len(ours) != 165 {
		t.Errorf("the table has %d codes; list one has 165 with minor units", len(ours))
	}
	for code, want := range jdk {
		got, known := ours[code]
		reason, explained := notInOurs[code]
		switch {
		case known && explained:
			t.Errorf("%s is in the table although it is listed as left out: %s", code, reason)
		case !known && !explained:
			t.Errorf("%s is in the JDK and not in the table, without a reason", code)
		case known && got != want:
			t.Errorf("%s is %+v, in the JDK %+v", code, got, want)
		}
		if reason == noMinorUnits && want.digits != -1 {
			t.Errorf("%s is left out for having no minor units; the JDK gives it %d digits", code, want.digits)
		}
	}
	for code := range ours {
		_, known := jdk[code]
		if reason := notInJDK[code]; known == (reason != "") {
			t.Errorf("%s: in the JDK: %v, reason to be missing there: %q", code, known, reason)
		}
	}
}

func TestCurrencyByCode(t *testing.T) {
	for code, row := range readTSV(t, "iso4217.tsv") {
		c, ok := event.CurrencyByCode(code)
		if !ok || c.Code() != code || c.String() != code || c.Digits() != row.digits || c.IsZero() {
			t.Errorf("CurrencyByCode(%s) = %v with %d digits, %v", code, c, c.Digits(), ok)
		}
	}
	for _, code := range []string{"", "eur", "EU", "EURO", "XAU", "XXX", "BGN", "HRK", "ANG", "ZZZ", " EUR"} {
		if c, ok := event.CurrencyByCode(code); ok || !c.IsZero() || c.Code() != "" || c.Digits() != 0 {
			t.Errorf("CurrencyByCode(%q) = %v, %v; want none", code, c, ok)
		}
	}
}

func TestParseCurrencies(t *testing.T) {
	tests := []struct {
		list    string
		text    string // result of String
		in, out string
	}{
		{list: "all", text: "all", in: "UYW", out: "XAU"},
		{list: " all ", text: "all", in: "EUR", out: "eur"},
		{list: "EUR", text: "EUR", in: "EUR", out: "USD"},
		{list: "USD, EUR,USD", text: "EUR,USD", in: "USD", out: "JPY"},
	}
	for _, tt := range tests {
		set, err := event.ParseCurrencies(tt.list)
		if err != nil {
			t.Errorf("%q: %v", tt.list, err)
			continue
		}
		if set.String() != tt.text {
			t.Errorf("%q reads back as %q, want %q", tt.list, set, tt.text)
		}
		if c, ok := set.Lookup(tt.in); !ok || c.Code() != tt.in {
			t.Errorf("%q lacks %s", tt.list, tt.in)
		}
		if _, ok := set.Lookup(tt.out); ok {
			t.Errorf("%q has %s", tt.list, tt.out)
		}
	}
}

func TestParseCurrenciesNamesTheUnknownCode(t *testing.T) {
	for list, named := range map[string]string{
		"": `""`, "EUR,": `""`, "EUR,XAU": `"XAU"`, "eur": `"eur"`, "all,EUR": `"all"`, "EUR;USD": `"EUR;USD"`,
	} {
		_, err := event.ParseCurrencies(list)
		if err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%q: error %v, want one that names %s", list, err, named)
		}
	}
}
