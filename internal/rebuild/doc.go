// Package rebuild reads a topic again from its first records into a projection that
// stands beside the live one, by the same rules, up to given offsets.
//
//	source ──records──▶ decode ──▶ Projection: fold … write (no dead letters)
//	                                   │
//	                                   └── versions passed over on purpose
//
// What people have done since is done again: a version that was passed over is never
// applied, whatever the topic has for it, and is passed over when its turn comes.
// Dead letters are decided and parked but not published: they have been.
package rebuild
