// Package faults shows tests of error handling: what they inject concerns the client of the test alone.
package faults
