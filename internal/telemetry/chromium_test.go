//go:build chromium

package telemetry

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

//go:embed testdata/axe-core/4.14.1/axe.min.js
var axe string

// The function looks returns the combinations of states and settings in which the status page is
// tested.
func looks() []struct {
	name  string
	scene *scene
	look  look
} {
	noScript := desktop
	noScript.noScript = true
	return []struct {
		name  string
		scene *scene
		look  look
	}{
		{"busy", busy(12), desktop},
		{"busy-dark", busy(12), dark},
		{"busy-phone", busy(12), phone},
		{"troubled-dark-phone", troubled(12), darkPhone},
		{"many", troubled(256), desktop},
		{"many-phone", troubled(256), phone},
		{"hostile", hostile(), desktop},
		{"hostile-phone", hostile(), phone},
		{"turnover", turnoverScene(1_200_000), desktop},
		{"nothing", &scene{health: NewHealth()}, desktop},
		{"no-script", troubled(12), noScript},
	}
}

// TestPageInABrowser shows the status page in many states and with many settings. The page must
// obey its content security policy, send no requests to other servers, fit into its window and be
// accessible.
func TestPageInABrowser(t *testing.T) {
	for _, c := range looks() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, c.scene.server().HTTP.Handler, c.look)
			if !c.look.noScript {
				b.await(`document.documentElement.classList.contains("live") && document.querySelectorAll("canvas").length === 3`)
				if c.scene.history != nil {
					b.await(drawn)
				}
			}
			b.picture(c.name)
			if c.look.noScript && (!strings.Contains(ask[string](b, `document.querySelector("noscript").innerText`), "Reload") || ask[int](b, `document.querySelectorAll("canvas").length`) > 0) {
				t.Error("without JavaScript there is no way to see more, or there is a chart")
			}
			if over := ask[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("the page is %d px wider than its window", over)
			}
			for _, problem := range b.heardOf() {
				t.Error(problem)
			}
			b.allowScripts(true)
			for _, violation := range violations(b) {
				t.Error(violation)
			}
		})
	}
}

// TestRunbookInABrowser shows that the documentation pages fit into their window and are
// accessible.
func TestRunbookInABrowser(t *testing.T) {
	for _, name := range []string{"runbook", "repairs"} {
		for _, l := range []look{desktop, darkPhone} {
			t.Run(name+"-"+l.name, func(t *testing.T) {
				t.Parallel()
				text, err := os.ReadFile("../../docs/" + name + ".md")
				if err != nil {
					t.Fatal(err)
				}
				s := newServer("127.0.0.1:0", NewRegistry(), NewHealth(), Page{Runbook: string(text), Repairs: string(text)}, quiet())
				b := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/" {
						r.URL.Path = "/" + name
					}
					s.HTTP.Handler.ServeHTTP(w, r)
				}), l)
				b.picture(name + "-" + l.name)
				if over := ask[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
					t.Errorf("the page is %d px wider than its window", over)
				}
				for _, problem := range append(b.heardOf(), violations(b)...) {
					t.Error(problem)
				}
			})
		}
	}
}

// drawn is true if each chart has more than 100 pixels in the colour --applied.
const drawn = `[...document.querySelectorAll("canvas")].every((canvas) => {
	const probe = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
	probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--applied").trim();
	probe.fillRect(0, 0, 1, 1);
	const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
	probe.clearRect(0, 0, 1, 1);
	probe.drawImage(canvas, 0, 0);
	const seen = probe.getImageData(0, 0, canvas.width, canvas.height).data;
	let n = 0;
	for (let i = 0; i < seen.length; i += 4) n += seen[i] === r && seen[i + 1] === g && seen[i + 2] === b && seen[i + 3] === 255;
	return n > 100;
})`

// The function violations runs axe-core with the rules that axe-core uses by default. It returns
// the violations.
func violations(b *tab) []string {
	b.t.Helper()
	found := ask[string](b, axe+`;
		axe.run(document, { resultTypes: ["violations"] }).then((result) => JSON.stringify(
			result.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + " at " + n.target.join(" ") + ". " + n.failureSummary))))`)
	var list []string
	if err := json.Unmarshal([]byte(found), &list); err != nil {
		b.t.Fatal(err)
	}
	return list
}

// TestTheBrowserNoticesABrokenPage shows that the checks of TestPageInABrowser can fail.
func TestTheBrowserNoticesABrokenPage(t *testing.T) {
	t.Parallel()
	inner := busy(3).server().HTTP.Handler
	broken := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r)
		if r.URL.Path == "/" {
			_, _ = fmt.Fprint(w, `<script>alert(1)</script><img src="http://192.0.2.1/x.png"><p style="width:3000px">x</p><button></button>`)
		}
	})
	b := open(t, broken, desktop)
	b.await(`document.querySelectorAll("canvas").length === 3`)
	all := strings.Join(append(b.heardOf(), violations(b)...), "\n")
	for _, want := range []string{"script-src", "img-src", "style-src", "button-name", "image-alt"} {
		if !strings.Contains(all, want) {
			t.Errorf("nobody noticed %s in\n%s", want, all)
		}
	}
}

// TestPageFollowsWhatHappens shows that an open page updates itself without a reload. It does not
// close opened sections, and it reports when the server does not answer any more.
func TestPageFollowsWhatHappens(t *testing.T) {
	t.Parallel()
	var now, gone atomic.Pointer[scene]
	before, after := busy(40), troubled(40)
	now.Store(before)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() != nil {
			panic(http.ErrAbortHandler)
		}
		now.Load().server().HTTP.Handler.ServeHTTP(w, r)
	})
	b := open(t, handler, desktop)
	b.await(drawn)
	if got := ask[string](b, `document.querySelector("#state").textContent + document.title`); got != "Readyready · account_balance" {
		t.Errorf("at first: %q", got)
	}
	if n := ask[int](b, `document.querySelectorAll("td .breaker_open, td .paused").length`); n != 0 {
		t.Errorf("%d partitions wait for a person already", n)
	}
	ask[bool](b, `window.first = document.querySelector("main"), document.querySelector("details").open = true`)
	now.Store(after)
	b.await(`document.querySelector("#state").textContent === "Not ready" && document.title.startsWith("not ready")`)
	if !ask[bool](b, `window.first === document.querySelector("main") && document.querySelector("details").open`) {
		t.Error("the page was replaced as a whole")
	}
	if n := ask[int](b, `document.querySelectorAll(".banner li").length`); n != 2 {
		t.Errorf("%d reasons", n)
	}
	for what, seen := range map[string]string{
		"a breaker that is open, and why":   row(".breaker_open", "malformed_payload", "projector resume"),
		"a pause, and whose it is":          row(".paused", "paused by ada@bank: new column, INC-1234"),
		"the margin, and how long it lasts": row(".retrying", "lasts 5 d"),
		"what the waiting accounts lack":    `document.querySelector(".roots").innerText.includes("11 version_gap, 5 invalid_amount, 1 rejected_by_database")`,
	} {
		if !ask[bool](b, seen) {
			t.Error("the page does not show " + what)
		}
	}
	gone.Store(after)
	b.await(`!document.querySelector("#silence").hidden && document.querySelector("#silence").textContent.startsWith("No answer")`)
	gone.Store(nil)
	b.await(`document.querySelector("#silence").hidden`)
}

// row returns a JavaScript expression. It is true when the status page shows a partition in the
// state, and the partition's row contains all the texts.
func row(state string, texts ...string) string {
	shown := fmt.Sprintf("r.querySelector(%q)", "td "+state)
	for _, text := range texts {
		shown += fmt.Sprintf(" && r.innerText.includes(%q)", text)
	}
	return `[...document.querySelectorAll("tr")].some((r) => ` + shown + `)`
}

// TestPageByKeyboard shows that the tab key reaches all controls of the status page, that the space
// bar works, and that the focus is visible.
func TestPageByKeyboard(t *testing.T) {
	t.Parallel()
	b := open(t, busy(40).server().HTTP.Handler, desktop)
	b.await(`!document.querySelector("#pause").hidden`)
	var seen []string
	for range 16 {
		b.press("Tab", "Tab", 9, "")
		seen = append(seen, ask[string](b, `(() => {
			const e = document.activeElement;
			return e === document.body ? "end" : e.textContent.trim() + (getComputedStyle(e).outlineStyle === "solid" ? "" : " (unseen)");
		})()`))
		if seen[len(seen)-1] == "end" {
			break
		}
		switch seen[len(seen)-1] {
		case "Pause updates", "All 40 partitions":
			b.press(" ", "Space", 32, " ")
		}
	}
	const want = "Pause updates, flowing, idle, All 40 partitions, The newest of all classes, status.json, metrics, readyz, livez, licence of the charts, end"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("the tab key leads to %s; want %s", got, want)
	}
	if !ask[bool](b, `document.querySelector("#pause").ariaPressed === "true" && document.querySelector("details").open`) {
		t.Error("the space bar does nothing")
	}
}

// TestChartsFollowTheColours shows that the charts change with the system's colour scheme without a
// reload.
func TestChartsFollowTheColours(t *testing.T) {
	t.Parallel()
	b := open(t, busy(3).server().HTTP.Handler, desktop)
	b.await(drawn)
	b.prefer("dark")
	b.await(drawn)
}
