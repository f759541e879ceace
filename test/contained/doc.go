// Package contained tests that a panic of urdmad while it serves a client ends that client alone. It is no part of the
// core, as features are not: what they panic with is the core's at the point where it calls them.
package contained
