//go:build nodemo

package cli

// demoCommand is empty in a build for production. Without the demo, the program contains no broker
// and no code that downloads a database.
type demoCommand struct{}
