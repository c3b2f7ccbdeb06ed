//go:build chromium

package telemetry

import (
	"context"
	"errors"
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

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "folder for pictures of the pages, to look at")

// chromium is one browser for all tests of the package.
var chromium context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	options := chromedp.DefaultExecAllocatorOptions[:]
	options = append(options, chromedp.DisableGPU) // there is none: what would stand in for it costs more
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox refuses root
	}
	allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
	started, stop := chromedp.NewContext(allocated)
	if err := chromedp.Do(started); err != nil {
		fmt.Fprintln(os.Stderr, "start Chromium (Debian's package chromium has it):", err)
		os.Exit(1)
	}
	chromium = started //nolint:fatcontext // one browser for all tests, each in a context of its own
	code := m.Run()
	stop()
	end()
	os.Exit(code)
}

// look is how a person looks at the page.
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

// tab is one tab that has opened the page of a server.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	problems []string // errors, violations of the policy, and what was asked of others
}

// open opens a page and waits until it is loaded.
func open(t *testing.T, handler http.Handler, l look) *tab {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, url: server.URL + "/"}
	b.do() // makes the tab, which must not end with the context of what is done in it
	b.ctx, cancel = context.WithTimeout(ctx, 30*time.Second)
	t.Cleanup(cancel)
	if err := chromedp.Listen(b.ctx, b.heard); err != nil {
		t.Fatal(err)
	}
	var viewport []chromedp.EmulateViewportOption
	if l.phone {
		viewport = append(viewport, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulateScale(2))
	}
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	b.do(
		chromedp.EmulateViewport(l.width, l.height, viewport...),
		call(log.Enable, cdp.Empty{}), call(network.Enable, network.EnableParams{}),
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		}),
		call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.noScript}),
		chromedp.Navigate(b.url),
	)
	return b
}

func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	})
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// ask evaluates an expression in the page.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%.200s: %v", expression, err)
	}
	return v
}

// await waits until an expression is true in the page.
func (b *tab) await(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(15*time.Second))); err != nil {
		b.t.Fatalf("waiting for %s: %v", expression, err)
	}
}

// heard takes note of what must not happen in a page.
func (b *tab) heard(event any) {
	var problem string
	switch e := event.(type) {
	case *log.EventEntryAdded:
		problem = fmt.Sprint(e.Entry.Level, " ", e.Entry.Source, ": ", e.Entry.Text, " ", e.Entry.URL)
	case *runtime.EventConsoleAPICalled:
		problem = fmt.Sprint("console.", e.Type)
	case *runtime.EventExceptionThrown:
		problem = fmt.Sprint("exception: ", e.ExceptionDetails.Text)
	case *network.EventRequestWillBeSent:
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

// heardOf answers what was heard so far.
func (b *tab) heardOf() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.problems)
}

// picture keeps a screenshot of the whole page when the flag asks for it.
func (b *tab) picture(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	first, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+"-top.png"), first, 0o600)
	}
	png, wholeErr := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err = errors.Join(err, wholeErr); err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o600)
	}
	if err != nil {
		b.t.Error(err)
	}
}
