// Package porttest is the conformance suite of package port. Every driver runs it in its own tests, so that
// the engine may rely on the interface and not on one driver's behaviour.
package porttest
