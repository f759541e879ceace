package main

import (
	"encoding/json"
	"io"
)

// printJSON prints a value as people read it.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
