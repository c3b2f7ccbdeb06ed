package cli

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"projector/internal/cli/flags"
)

// deployment has the commands and variables of the program that the files in deploy/ use.
type deployment struct {
	commands map[string][][]string // by file: the arguments of our containers
	env      map[string][]string   // by variable: the files that set it
	values   map[string][]string   // by variable: its values in plain text
}

// TestDeployUsesWhatTheProgramHas reads every manifest. Every command, flag and variable in it must
// exist, because the program ignores a misspelt variable.
func TestDeployUsesWhatTheProgramHas(t *testing.T) {
	d := readDeployment(t)
	known := variables(t)
	for name, files := range d.env {
		if !known[name] {
			t.Errorf("%s: the program knows no variable %s", files[0], name)
		}
	}
	for file, commands := range d.commands {
		for _, args := range commands {
			if _, err := parserOf(t, args...).Parse(args); err != nil {
				t.Errorf("%s: projector %s: %v", file, strings.Join(args, " "), err)
			}
		}
	}
	// These variables must be in the files.
	for _, name := range []string{"KAFKA_BROKERS", "KAFKA_GROUP", "PROJECTION", "DATABASE_URL", "KAFKA_SASL_PASSWORD_FILE"} {
		if len(d.env[name]) == 0 {
			t.Errorf("no manifest sets %s", name)
		}
	}
}

// TestDeployValuesAreAccepted shows that the flags of `run` accept each plain value of the
// manifests.
func TestDeployValuesAreAccepted(t *testing.T) {
	for name, values := range readDeployment(t).values {
		for _, value := range values {
			t.Run(name+"="+value, func(t *testing.T) {
				t.Setenv(name, value)
				if _, err := parserOf(t, "run").Parse([]string{"run"}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestDeployWithAMisspeltFlagWouldBeFound(t *testing.T) {
	for _, args := range [][]string{{"run", "--tpoic=x"}, {"dlq", "reply"}, {"migrate", "--yes"}} {
		if _, err := parserOf(t, args...).Parse(args); err == nil {
			t.Errorf("projector %s is accepted", strings.Join(args, " "))
		}
	}
	if known := variables(t); known["KAFKA_BROKER"] || !known["KAFKA_BROKERS"] {
		t.Error("the variables of the program are not distinguished")
	}
}

// parserOf returns the parser that the program uses for a command line. Without arguments it has all
// commands, which takes much longer than one command.
func parserOf(t *testing.T, args ...string) *kong.Kong {
	t.Helper()
	parser, err := newParser(args, flags.BuildInfo{}, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// variables returns the variables of the program and GOMEMLIMIT, which the Go runtime reads.
func variables(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{"GOMEMLIMIT": true}
	err := kong.Visit(parserOf(t).Model, func(node kong.Visitable, next kong.Next) error {
		if flag, isFlag := node.(*kong.Flag); isFlag {
			for _, name := range flag.Envs {
				known[name] = true
			}
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func readDeployment(t *testing.T) deployment {
	t.Helper()
	d := deployment{commands: map[string][][]string{}, env: map[string][]string{}, values: map[string][]string{}}
	root := os.DirFS(filepath.Join("..", "..", "deploy"))
	err := fs.WalkDir(root, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		return d.read(path, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.commands) < 3 {
		t.Fatalf("%d manifests with containers of ours were found", len(d.commands))
	}
	return d
}

// read reads the documents of a file, or of a patch in that file.
func (d *deployment) read(file string, text []byte) error {
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document any
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := d.visit(file, document); err != nil {
			return err
		}
	}
}

var (
	oursImage   = regexp.MustCompile(`^projector(:|$)`)
	oursObject  = regexp.MustCompile(`^projector`)
	environment = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
)

func (d *deployment) visit(file string, node any) error {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			if err := d.visit(file, item); err != nil {
				return err
			}
		}
	case map[string]any:
		d.collect(file, node)
		for key, value := range node {
			if patch, isText := value.(string); isText && key == "patch" {
				if err := d.read(file, []byte(patch)); err != nil {
					return err
				}
			}
			if err := d.visit(file, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect records the content of one object: a container, a compose service, a variable, or the
// literals of a generated ConfigMap.
func (d *deployment) collect(file string, object map[string]any) {
	name, _ := object["name"].(string)
	image, _ := object["image"].(string)
	if oursImage.MatchString(image) {
		args := append(textsOf(object["args"]), textsOf(object["command"])...)
		if len(args) > 0 {
			d.commands[file] = append(d.commands[file], args)
		}
		if variables, isMap := object["environment"].(map[string]any); isMap {
			for name, value := range variables {
				d.set(file, name, value)
			}
		}
	}
	if _, refers := object["valueFrom"]; refers || environment.MatchString(name) {
		d.set(file, name, object["value"])
	}
	if oursObject.MatchString(name) {
		for _, literal := range textsOf(object["literals"]) {
			name, value, _ := strings.Cut(literal, "=")
			d.set(file, name, value)
		}
	}
}

func (d *deployment) set(file, name string, value any) {
	d.env[name] = append(d.env[name], file)
	// The program does not read GOMEMLIMIT. The Go runtime reads it.
	if text, plain := value.(string); plain && name != "GOMEMLIMIT" {
		d.values[name] = append(d.values[name], text)
	}
}

func textsOf(node any) []string {
	items, _ := node.([]any)
	var all []string
	for _, item := range items {
		if text, isText := item.(string); isText {
			all = append(all, text)
		}
	}
	return all
}
