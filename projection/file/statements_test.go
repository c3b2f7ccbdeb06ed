package file_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"projector/projection/file"
)

func TestStatementsAreSplit(t *testing.T) {
	for _, c := range []struct {
		sql  string
		want []file.Statement // line numbers begin at 1
	}{
		{"SELECT 1", []file.Statement{{"SELECT 1", 1}}},
		{"SELECT 1; ; -- end\n SELECT 2 -- so\n ;", []file.Statement{{"SELECT 1", 1}, {"SELECT 2", 2}}},
		{"SELECT ';', 'a''; b', \"c\"\"; d\"; SELECT 2", []file.Statement{{"SELECT ';', 'a''; b', \"c\"\"; d\"", 1}, {"SELECT 2", 1}}},
		{`SELECT 'a\'; SELECT 2`, []file.Statement{{`SELECT 'a\'`, 1}, {"SELECT 2", 1}}},
		{`SELECT E'a\'; b', e'\\'; SELECT 2`, []file.Statement{{`SELECT E'a\'; b', e'\\'`, 1}, {"SELECT 2", 1}}},
		{"SELECT E'a'\n '\\'; b'; SELECT 2", []file.Statement{{"SELECT E'a'\n '\\'; b'", 1}, {"SELECT 2", 2}}},
		{"SELECT 1 -- a\r; SELECT E'a'\r'\\'; b'; SELECT 2", []file.Statement{{"SELECT 1", 1}, {"SELECT E'a'\r'\\'; b'", 1}, {"SELECT 2", 1}}},
		{"SELECT E'a' -- ;'\n -- x\n\n '\\'; b'; SELECT 2", []file.Statement{{"SELECT E'a' -- ;'\n -- x\n\n '\\'; b'", 1}, {"SELECT 2", 4}}},
		{"SELECT E'a'\n /* x */ '\\'; SELECT 2", []file.Statement{{"SELECT E'a'\n /* x */ '\\'", 1}, {"SELECT 2", 2}}}, // PostgreSQL refuses this
		{`SELECT nameE'a\'; SELECT 2`, []file.Statement{{`SELECT nameE'a\'`, 1}, {"SELECT 2", 1}}},
		{`SELECT U&'\0041;', U&"a;", x'1f', N'b;'; SELECT 2`, []file.Statement{{`SELECT U&'\0041;', U&"a;", x'1f', N'b;'`, 1}, {"SELECT 2", 1}}},
		{"SELECT $$;'$$, $a$;$$;$b$;$a$, a$b$c; SELECT 2", []file.Statement{{"SELECT $$;'$$, $a$;$$;$b$;$a$, a$b$c", 1}, {"SELECT 2", 1}}},
		{"/* ; /* ; */ ' */ SELECT /* ; */ 1 -- ;'\n;SELECT 2", []file.Statement{{"SELECT /* ; */ 1", 1}, {"SELECT 2", 2}}},
		{"SELECT a--;\n-1, b/*;*/, c->'d', 1.5e3; SELECT 2", []file.Statement{{"SELECT a--;\n-1, b/*;*/, c->'d', 1.5e3", 1}, {"SELECT 2", 2}}},
		{"DO $$ BEGIN COMMIT; END $$; SET LOCAL work_mem = '1MB'; SET CONSTRAINTS ALL DEFERRED", []file.Statement{
			{"DO $$ BEGIN COMMIT; END $$", 1}, {"SET LOCAL work_mem = '1MB'", 1}, {"SET CONSTRAINTS ALL DEFERRED", 1},
		}},
		{"MERGE INTO a USING new_events e ON true WHEN MATCHED THEN DELETE; WITH commit AS (SELECT 1) TABLE commit", []file.Statement{
			{"MERGE INTO a USING new_events e ON true WHEN MATCHED THEN DELETE", 1}, {"WITH commit AS (SELECT 1) TABLE commit", 1},
		}},
		{"'COMMIT';\"COMMIT\"", []file.Statement{{"'COMMIT'", 1}, {`"COMMIT"`, 1}}}, // PostgreSQL refuses these
	} {
		p, err := file.Parse("f", []byte(header+c.sql))
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		for i := range c.want {
			c.want[i].Line += strings.Count(header, "\n")
		}
		if !equal(p.Statements, c.want) {
			t.Errorf("%s: split into\n%+v, want\n%+v", c.sql, p.Statements, c.want)
		}
	}
}

func equal(a, b []file.Statement) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestStatementsComeBack joins statements whose strings and comments contain semicolons, and shows
// that Parse splits them again.
func TestStatementsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z;'"$\\\n -]{0,8}`)
		piece := rapid.OneOf(
			rapid.SampledFrom([]string{"a", "E", "1", "+", ",", "::", "->>", "$ ", "case", "end", "(x)", "b$c"}),
			rapid.Map(text, func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }),
			rapid.Map(text, func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }),
			// Without the operator, a string in a later line would continue this one and have escapes, too.
			rapid.Map(text, func(s string) string { return " E'" + escaped(s) + "' ||" }),
			rapid.Map(text.Filter(func(s string) bool { return strings.Index(s+"$t$", "$t$") == len(s) }),
				func(s string) string { return " $t$" + s + "$t$" }),
			rapid.Map(text, func(s string) string { return "/* /**/ " + s + " */" }),
			rapid.Map(text, func(s string) string { return "--" + strings.ReplaceAll(s, "\n", " ") + "\n" }),
		)
		between := rapid.SampledFrom([]string{";", " ;\n", "; -- ;\n", ";;/* ; */"})
		sql, want := "", []file.Statement{}
		for range rapid.IntRange(1, 5).Draw(t, "statements") {
			pieces := rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces")
			statement := strings.Join(append(append([]string{"SELECT"}, pieces...), "1"), " ")
			want = append(want, file.Statement{SQL: statement, Line: 4 + strings.Count(sql, "\n")})
			sql += statement + between.Draw(t, "between")
		}
		p, err := file.Parse("f", []byte(header+sql))
		if err != nil {
			t.Fatalf("%q: %v", sql, err)
		}
		if !equal(p.Statements, want) {
			t.Fatalf("split into\n%+v, want\n%+v", p.Statements, want)
		}
	})
}

func escaped(s string) string {
	return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s)
}

// FuzzParse shows that the statements of a file are in the file in this order, at or after their
// lines. Each statement is a single statement if it is parsed alone.
func FuzzParse(f *testing.F) {
	for _, sql := range []string{
		example, header + "SELECT E'\\'' ; SELECT $a$;$a$; /* ; */ SELECT 1", header + "CREATE FUNCTION f() AS $f$ BEGIN; END $f$; SELECT (1;2)", "-- mode: x\n\\",
		header + "SELECT E'a'\n'\\';b';\nx",
	} {
		f.Add([]byte(sql))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := file.Parse("f", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f: line ") {
				t.Errorf("error %v names no line", err)
			}
			return
		}
		lines := strings.SplitAfter(string(text), "\n")
		rest := string(text)
		for _, s := range p.Statements {
			_, behind, found := strings.Cut(rest, s.SQL)
			if !found || !strings.Contains(strings.Join(lines[s.Line-1:], ""), s.SQL) {
				t.Fatalf("%q does not stand at line %d of %q", s.SQL, s.Line, text)
			}
			rest = behind
			alone, err := file.Parse("f", []byte(header+s.SQL))
			if err != nil || len(alone.Statements) != 1 || alone.Statements[0].SQL != s.SQL {
				t.Fatalf("%q by itself: %+v, %v", s.SQL, alone.Statements, err)
			}
		}
	})
}
