// Package report puts what the bench found into tables, files and plots.
package report
