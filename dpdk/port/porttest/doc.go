// Package porttest is the conformance suite of package port: every driver runs
// it in its own tests, so that the engine may rely on the contract and not on
// one driver's habits.
package porttest
