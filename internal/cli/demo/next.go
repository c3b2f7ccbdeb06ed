package demo

import (
	"cmp"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"projector/internal/cli/output"
	"projector/projection/event"
)

type hint struct {
	why   string
	lines []string
}

// reportNext prints commands to try next. It leaves out commands for servers that have ended.
func (d *demo) reportNext(stale []staleAccount) {
	p, title, hints := d.page, "What to type next", d.afterwards()
	if d.cmd.Stay {
		title, hints = "What to type next, in another terminal", d.meanwhile(stale)
	}
	p.part(title)
	for _, h := range hints {
		p.printf("  %s\n", p.paint(output.Dim, "# "+h.why))
		for _, line := range h.lines {
			p.printf("    %s\n", line)
		}
	}
}

// afterwards returns commands to try after the demo has ended.
func (d *demo) afterwards() []hint {
	program := typed()
	return []hint{
		{"the same, kept up to look around in and to heal what is stale", []string{program + " demo --stay"}},
		{"the same on your servers (an empty database)", []string{
			"export KAFKA_BROKERS=HOST:PORT DATABASE_URL=postgres://USER@HOST/DATABASE", program + " demo",
		}},
		{"your own events: what are they read as?", []string{program + " inspect --brokers HOST:PORT --topic TOPIC"}},
		{"then into tables", []string{program + " migrate", program + " run --help"}},
	}
}

// typed returns the path or name by which a shell can start the program. A path below the current
// folder becomes relative.
func typed() string {
	name := os.Args[0]
	if here, err := os.Getwd(); err == nil && filepath.IsAbs(name) {
		if below, err := filepath.Rel(here, name); err == nil && filepath.IsLocal(below) {
			return "." + string(filepath.Separator) + below
		}
	}
	return name
}

// meanwhile returns commands to try while the demo keeps its servers running (--stay). The export
// lines come first, because the other commands need their variables.
func (d *demo) meanwhile(stale []staleAccount) []hint {
	http := "http://" + d.process.Addr()
	program, folder := installed()
	hints := []hint{
		{"once: where everything is", d.exports(folder)},
		{"the status page, for a browser", []string{http + "/"}},
		{"is it ready? what does it count?", []string{"curl -i " + http + "/readyz", "curl -s " + http + "/metrics | grep ^projector_"}},
		{"what the records are read as, what was dead-lettered, and who waits", []string{
			program + " inspect", program + " dlq summary", program + " gaps",
		}},
	}
	hints = append(hints, d.healing(program, stale)...)
	return append(hints,
		hint{"a second instance, which takes over half of the partitions", []string{program + " run --listen :0"}},
		hint{"to end all this, here", []string{"Ctrl-C"}})
}

// healing returns commands that repair waiting accounts. One command skips a missing event, and
// others remove the cause of a rejection and replay the event.
func (d *demo) healing(program string, stale []staleAccount) []hint {
	var hints []hint
	if s := waitsFor(stale, event.VersionGap); s != nil {
		hints = append(hints, hint{"heal an account: its event is lost, so skip it", []string{
			program + " account show " + s.ID,
			program + " account skip " + s.ID + " --version=" + strconv.FormatInt(s.Waits, 10) + " --reason=lost --yes",
		}})
	}
	if s := waitsFor(stale, event.RejectedByDatabase); s != nil && d.ownDatabase {
		hints = append(hints, hint{"heal another: remove what refused its event, then replay that", []string{
			"psql -c 'ALTER TABLE account_balance DROP CONSTRAINT " + refusal + "'",
			program + " dlq replay --class=" + string(event.RejectedByDatabase) + " --yes",
			program + " account show " + s.ID,
		}})
	}
	return hints
}

// waitsFor returns an account that waits for an event of the given class, or nil.
func waitsFor(stale []staleAccount, class event.Class) *staleAccount {
	at := slices.IndexFunc(stale, func(s staleAccount) bool { return s.Class == string(class) })
	if at < 0 {
		return nil
	}
	return &stale[at]
}

// exports returns export lines for the demo's servers and this program. They contain the password
// of the demo's own temporary server. They do not contain a database URL of the user.
func (d *demo) exports(folder string) []string {
	lines := []string{"export KAFKA_BROKERS=" + strings.Join(d.run.Brokers, ","), "export KAFKA_TOPIC=" + d.run.Topic}
	if d.run.Group != "" {
		lines = append(lines, "export KAFKA_GROUP="+d.run.Group)
	}
	if u, err := url.Parse(d.run.DatabaseURL); d.ownDatabase && err == nil {
		password, _ := u.User.Password()
		lines = append(lines,
			"export PGHOST="+u.Hostname()+" PGPORT="+u.Port()+" PGUSER="+u.User.Username(),
			"export PGPASSWORD="+password,
			"export PGDATABASE="+strings.TrimPrefix(u.Path, "/")+" PGSSLMODE="+cmp.Or(u.Query().Get("sslmode"), "prefer"))
	} else {
		lines = append(lines, "export DATABASE_URL=…    # as you gave it")
	}
	if folder != "" {
		lines = append(lines, `export PATH="`+folder+`:$PATH"`)
	}
	return lines
}

// installed returns this program's name, and its folder if a shell does not find the name by
// itself.
func installed() (name, folder string) {
	own, err := os.Executable()
	if err != nil {
		return "projector", ""
	}
	name = filepath.Base(own)
	if found, err := exec.LookPath(name); err == nil {
		if found, err = filepath.EvalSymlinks(found); err == nil && found == own {
			return name, ""
		}
	}
	return name, filepath.Dir(own)
}
