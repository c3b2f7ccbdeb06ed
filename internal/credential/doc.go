// Package credential reads what proves who we are to a server, and who the server is
// to us: passwords, tokens, certificates and keys that live in files.
//
// Files change while the program runs: Kubernetes renews a mounted secret by
// swapping a symlink. Nothing is cached and nothing is watched. Each new connection
// reads its files, so the next one after a change has the new secret, and a file
// that cannot be read for a while fails that connection and not the program.
//
// Errors are *fs.PathError, whatever is wrong with a file. They name the file and
// never tell what is in it.
package credential
