// Package report writes the results of the bench as tables, files and plots.
package report
