// Package contained tests that a panic of urdmad while it serves a client ends only that client. It is no part of
// the core, like features: a panic in a feature counts as one of the core, at the place where the core calls it.
package contained
