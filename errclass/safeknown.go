package errclass

import (
	"fmt"
	"io/fs"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

// knownText tells an error whose parts are known; sure is as in describe. ok is
// false for all others.
func knownText(err error) (text string, sure, ok bool) {
	switch e := err.(type) { //nolint:errorlint // one node is meant, not its chain
	case *pgconn.ConnectError:
		text, sure = connectText(e)
	case *net.OpError:
		text, sure = socketText(e)
	case *kgo.ErrGroupSession:
		text, sure = groupText(e)
	default:
		text, ok = fieldsText(err)
		if !ok {
			text, ok = fixedText(err)
		}
		return text, ok, ok
	}
	return text, sure, true
}

// fieldsText tells an error from its own fields alone.
func fieldsText(err error) (text string, ok bool) {
	switch e := err.(type) { //nolint:errorlint // one node is meant, not its chain
	case Describer:
		return e.SafeText(), true
	case *pgconn.PgError:
		return serverText(e), true
	case *pgconn.ParseConfigError:
		return parseConfigText(e), true
	case pgx.ScanArgError:
		// What lies below repeats the value.
		return fmt.Sprintf("column %s cannot be read into what this build expects", e.FieldName), true
	case *sr.ResponseError:
		return registryText(e), true
	case *net.DNSError:
		return fmt.Sprintf("lookup %s: %s", safeName(e.Name), e.Err), true
	case *kerr.Error, *kgo.ErrDataLoss, *kgo.ErrDecompressTooLarge, *kgo.ErrFirstReadEOF, *fs.PathError:
		return e.Error(), true
	}
	return "", false
}

// fixedText tells errors whose whole text is a constant of a library.
func fixedText(err error) (string, bool) {
	if isTLS(err) {
		return err.Error(), true
	}
	if len(children(err)) > 0 {
		return "", false
	}
	for _, j := range []judge{postgresNode, kafkaNode, registryNode, networkNode} {
		if _, ok := j(err); ok {
			return err.Error(), true
		}
	}
	return "", false
}

// socketText tells where a socket operation failed and why. The address is
// resolved, so it is never a piece of a connection string.
func socketText(e *net.OpError) (string, bool) {
	if isAlert(e) { // the texts of TLS alerts are fixed
		return e.Error(), true
	}
	if e.Err == nil {
		return strings.TrimSpace(e.Op + " " + e.Net), true
	}
	why, sure := describe(e.Err)
	if e.Addr == nil {
		return fmt.Sprintf("%s %s: %s", e.Op, e.Net, why), sure
	}
	return fmt.Sprintf("%s %s %s: %s", e.Op, e.Net, e.Addr, why), sure
}

func groupText(e *kgo.ErrGroupSession) (string, bool) {
	const what = "unable to join group session"
	if e.Err == nil {
		return what, true
	}
	text, sure := describe(e.Err)
	return what + ": " + text, sure
}
