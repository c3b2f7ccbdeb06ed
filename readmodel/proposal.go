package readmodel

import "errors"

// Proposal is an error whose text proposes a command. The command has to name the same topic,
// projection and group as the command or the process that failed.
type Proposal interface {
	error
	// ForReader sets the flags that name them, each after a space. Defaults are left out.
	ForReader(flags string)
}

// ForReader sets the flags of the command that err proposes, if it is a Proposal. It returns err.
func ForReader(err error, flags string) error {
	if p := Proposal(nil); flags != "" && errors.As(err, &p) {
		p.ForReader(flags)
	}
	return err
}
