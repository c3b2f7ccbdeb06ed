package errclass

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"

	"github.com/twmb/franz-go/pkg/sr"
)

// networkNode classifies the errors that PostgreSQL and Kafka have in common: those of contexts,
// sockets, name resolution and TLS.
func networkNode(node error) (finding, bool) {
	switch node {
	case context.Canceled:
		return finding{class: Retry, reason: "canceled"}, true
	case io.EOF, io.ErrUnexpectedEOF:
		return finding{class: Retry, reason: "eof"}, true
	case net.ErrClosed, io.ErrClosedPipe:
		return finding{class: Retry, reason: "closed"}, true
	}
	if isTLS(node) {
		return finding{class: RetryUnready, reason: "tls"}, true
	}
	switch e := node.(type) { //nolint:errorlint // only this node, not its chain
	case *net.OpError:
		return socketFinding(e), true
	case *net.DNSError:
		return finding{class: Retry, reason: timeoutOr(e, "resolve")}, true
	case *fs.PathError:
		// Usually a certificate file or key file is missing, or this process may not read it.
		return finding{class: RetryUnready, reason: "file"}, true
	case *os.SyscallError:
		return finding{class: Retry, reason: timeoutOr(e, "network")}, true
	case syscall.Errno:
		return finding{class: Retry, reason: timeoutOr(e, "network")}, true
	case net.Error: // for example context.DeadlineExceeded
		if e.Timeout() {
			return finding{class: Retry, reason: "timeout"}, true
		}
	}
	return finding{}, false
}

// isAlert reports whether e is a TLS alert. crypto/tls wraps an alert of the peer in an OpError
// with Op "remote error", and an alert of this side in one with "local error".
func isAlert(e *net.OpError) bool {
	return e.Err != nil && (e.Op == "remote error" || e.Op == "local error")
}

func socketFinding(e *net.OpError) finding {
	if isAlert(e) {
		return finding{class: RetryUnready, reason: "tls"}
	}
	if f, ok := search(e.Err, []classifier{tlsNode}); ok {
		return f
	}
	var dns *net.DNSError
	switch {
	case e.Timeout():
		return finding{class: Retry, reason: "timeout"}
	case errors.As(e.Err, &dns):
		return finding{class: Retry, reason: "resolve"}
	case e.Op == "dial":
		return finding{class: Retry, reason: "connect"}
	default:
		return finding{class: Retry, reason: "network"}
	}
}

func tlsNode(node error) (finding, bool) {
	return finding{class: RetryUnready, reason: "tls"}, isTLS(node)
}

// isTLS reports whether node says that no trusted connection can be made. Waiting does not help,
// because a certificate or a setting has to change.
func isTLS(node error) bool {
	switch node.(type) { //nolint:errorlint // only this node, not its chain
	case *tls.CertificateVerificationError, tls.RecordHeaderError, *tls.RecordHeaderError, tls.AlertError,
		x509.UnknownAuthorityError, x509.HostnameError, x509.CertificateInvalidError,
		x509.SystemRootsError, x509.ConstraintViolationError, x509.UnhandledCriticalExtension,
		x509.InsecureAlgorithmError:
		return true
	}
	return false
}

func timeoutOr(e interface{ Timeout() bool }, reason string) string {
	if e.Timeout() {
		return "timeout"
	}
	return reason
}

// Registry classifies an error of a schema registry's client, however deeply it is wrapped. It
// never returns Isolate, because a refusal by a registry does not mean that the event is bad. The
// function Postgres describes how errors of contexts are classified. A nil error is Unknown.
func Registry(err error) Class { return worst(err, registryNode, networkNode).class }

// registryNode classifies an answer of a registry. Status 404 means a wrong URL here, not a missing
// schema.
func registryNode(node error) (finding, bool) {
	e, ok := node.(*sr.ResponseError) //nolint:errorlint // only this node, not its chain
	if !ok {
		return finding{}, false
	}
	f := finding{class: Retry, reason: "http_" + strconv.Itoa(e.StatusCode)}
	switch {
	case e.StatusCode == http.StatusRequestTimeout, e.StatusCode == http.StatusTooManyRequests:
	case e.StatusCode < http.StatusInternalServerError:
		f.class = RetryUnready // credentials, a permission, the URL
	}
	return f, true
}
