package registry

import "projector/errclass"

// Dependency is the name of the registry in metrics and logs.
const Dependency = "schema_registry"

// Error says that the registry could not be asked, or did not answer as one does. It
// passes, by itself or when somebody mends it.
type Error struct{ err error }

// Error implements error.
func (e *Error) Error() string { return "schema registry: " + e.err.Error() }

// Unwrap returns the client's error.
func (e *Error) Unwrap() error { return e.err }

// SafeText implements errclass.Describer.
func (e *Error) SafeText() string { return "schema registry: " + errclass.Safe(e.err) }

// Dependency names what is failing.
func (*Error) Dependency() string { return Dependency }
