//go:build !failpoints

package failpoint

// Here does nothing in a program that is built without the tag failpoints.
func Here(string) {}
