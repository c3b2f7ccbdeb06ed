//go:build nodemo

package cli

// demoCommand is empty in a build for production: without the demo, the program holds no
// broker and nothing that downloads a database.
type demoCommand struct{}
