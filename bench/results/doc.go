// Package results has the results of a bench run and judges them: medians, spreads, and whether a ratio is
// significant against the spread. It measures nothing and prints nothing.
package results
