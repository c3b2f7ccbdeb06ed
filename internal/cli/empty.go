package cli

import (
	"os"

	"github.com/alecthomas/kong"
)

// forgetEmptyEnvironment makes an empty variable of a flag the same as none: Compose
// and Kubernetes set those that have no value.
func forgetEmptyEnvironment(app *kong.Application) error {
	return kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		flag, isFlag := node.(*kong.Flag)
		if !isFlag {
			return next(nil)
		}
		for _, name := range flag.Envs {
			if value, set := os.LookupEnv(name); set && value == "" {
				if err := os.Unsetenv(name); err != nil {
					return err
				}
			}
		}
		return next(nil)
	})
}

// refuseEmptyFilters refuses a filter that was given without a value, as by an unset
// variable of a script: without it, a repair would be of everything.
func refuseEmptyFilters(parsed *kong.Context) error {
	for _, step := range parsed.Path {
		if f := step.Flag; f != nil && f.Group != nil && f.Group.Key == filterGroup && isEmpty(f) {
			return usagef("--%s: is empty; give it a value or leave it out", f.Name)
		}
	}
	return nil
}

// filterGroup is the group of the flags that choose what a command works on.
const filterGroup = "Filter"

func isEmpty(f *kong.Flag) bool {
	switch value := f.Target.Interface().(type) {
	case string:
		return value == ""
	case []string:
		return len(items(value)) == 0
	case []int32:
		return len(value) == 0
	case []int64:
		return len(value) == 0
	default:
		return false
	}
}
