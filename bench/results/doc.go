// Package results has what a run of the bench found, and what may be said of
// it: medians, spreads, and whether a ratio is one that the spread carries. It
// measures nothing and prints nothing.
package results
