//go:build chromium

package telemetry

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var screenshots = flag.String("screenshots", "", "folder for pictures of the pages, to look at")

// chromium is one browser for all tests of the package.
var chromium *browser

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if chromium, err = startBrowser(); err != nil {
		fmt.Fprintln(os.Stderr, "start Chromium (Debian's package chromium has it):", err)
		os.Exit(1)
	}
	code := m.Run()
	chromium.close()
	os.Exit(code)
}

// look has the settings with which a test shows a page, for example its size and colours.
type look struct {
	name          string
	width, height int64
	dark          bool
	phone         bool
	noScript      bool
}

var (
	desktop   = look{name: "light", width: 1200, height: 900}
	dark      = look{name: "dark", width: 1200, height: 900, dark: true}
	phone     = look{name: "phone", width: 360, height: 740, phone: true}
	darkPhone = look{name: "dark-phone", width: 320, height: 640, phone: true, dark: true}
)

// tab is a browser tab that has opened a page of a server.
type tab struct {
	t       *testing.T
	ctx     context.Context
	url     string
	session string
	scripts bool // scripts may run; without scripts, no promise can be awaited

	mu       sync.Mutex
	problems []string // errors, violations of the policy and requests to other servers
	loaded   chan struct{}
}

// args are the parameters of a command of the Chrome DevTools Protocol.
type args map[string]any

// open opens a page and waits until it is loaded.
func open(t *testing.T, handler http.Handler, l look) *tab {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, url: server.URL + "/", loaded: make(chan struct{}, 1)}
	var made struct{ BrowserContextID, TargetID, SessionID string }
	b.call("Target.createBrowserContext", nil, &made)
	b.call("Target.createTarget", args{"url": "about:blank", "browserContextId": made.BrowserContextID}, &made)
	b.call("Target.attachToTarget", args{"targetId": made.TargetID, "flatten": true}, &made)
	b.session = made.SessionID
	chromium.listen(b.session, b.heard)
	t.Cleanup(func() { // this runs also after a time-out
		_ = chromium.call(context.Background(), "", "Target.disposeBrowserContext", args{"browserContextId": made.BrowserContextID}, nil)
	})
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	scheme, scale := "light", 1
	if l.dark {
		scheme = "dark"
	}
	if l.phone {
		scale = 2
		b.call("Emulation.setTouchEmulationEnabled", args{"enabled": true}, nil)
	}
	b.call("Emulation.setDeviceMetricsOverride", args{"width": l.width, "height": l.height, "deviceScaleFactor": scale, "mobile": l.phone}, nil)
	b.prefer(scheme)
	b.allowScripts(!l.noScript)
	b.call("Page.navigate", args{"url": b.url}, nil)
	select {
	case <-b.loaded:
	case <-ctx.Done():
		t.Fatal("the page is not loaded")
	}
	return b
}

// call sends a command to the tab. As long as there is no tab, it sends the command to the browser.
func (b *tab) call(method string, params args, result any) {
	b.t.Helper()
	if err := chromium.call(b.ctx, b.session, method, params, result); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

// prefer makes the browser report a colour scheme of the system, which is light or dark.
func (b *tab) prefer(scheme string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", args{"features": []args{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

func (b *tab) allowScripts(allow bool) {
	b.t.Helper()
	b.scripts = allow
	b.call("Emulation.setScriptExecutionDisabled", args{"value": !allow}, nil)
}

// press presses and releases a key.
func (b *tab) press(key, code string, number int, text string) {
	b.t.Helper()
	down := args{"type": "keyDown", "key": key, "code": code, "windowsVirtualKeyCode": number, "text": text}
	b.call("Input.dispatchKeyEvent", down, nil)
	b.call("Input.dispatchKeyEvent", args{"type": "keyUp", "key": key, "code": code, "windowsVirtualKeyCode": number}, nil)
}

// ask evaluates an expression in the page and returns its value.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value T }
		ExceptionDetails *struct{ Text string }
	}
	b.call("Runtime.evaluate", args{"expression": expression, "awaitPromise": b.scripts, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%.200s: %s", expression, answer.ExceptionDetails.Text)
	}
	return answer.Result.Value
}

// await waits until an expression becomes true in the page.
func (b *tab) await(expression string) {
	b.t.Helper()
	limit := time.NewTimer(3 * time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ask[bool](b, "Boolean("+expression+")") {
		select {
		case <-tick.C:
		case <-limit.C:
			b.t.Fatalf("waiting for %s", expression)
		}
	}
}

// The method heard receives all events of the page. It records the events that must not happen, and
// the end of the page's load.
func (b *tab) heard(method string, params json.RawMessage) {
	var e struct {
		Entry            struct{ Level, Source, Text, URL string }
		Type             string
		ExceptionDetails struct{ Text string }
		Request          struct{ URL string }
	}
	if err := json.Unmarshal(params, &e); err != nil && method != "Page.loadEventFired" {
		return // it is an event of another type
	}
	var problem string
	switch method {
	case "Page.loadEventFired":
		select {
		case b.loaded <- struct{}{}:
		default:
		}
		return
	case "Log.entryAdded":
		problem = fmt.Sprint(e.Entry.Level, " ", e.Entry.Source, ": ", e.Entry.Text, " ", e.Entry.URL)
	case "Runtime.consoleAPICalled":
		problem = "console." + e.Type
	case "Runtime.exceptionThrown":
		problem = "exception: " + e.ExceptionDetails.Text
	case "Network.requestWillBeSent":
		if strings.HasPrefix(e.Request.URL, b.url) {
			return
		}
		problem = "asked another: " + e.Request.URL
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, problem)
}

// heardOf returns the recorded problems.
func (b *tab) heardOf() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.problems)
}

// picture stores screenshots of the window and of the whole page if the flag is set.
func (b *tab) picture(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	for ending, whole := range map[string]bool{"-top.png": false, ".png": true} {
		var shot struct{ Data []byte } // encoding/json decodes the base64 text
		b.call("Page.captureScreenshot", args{"captureBeyondViewport": whole}, &shot)
		if err := os.WriteFile(filepath.Join(*screenshots, name+ending), shot.Data, 0o600); err != nil {
			b.t.Error(err)
		}
	}
}
