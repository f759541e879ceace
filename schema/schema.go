// Package schema holds the JSON Schema (draft-07) of urdma.json and reads it
// as a list of properties. It is the one place that says which settings
// exist, what they may be and what they default to: package config validates
// against it and takes its defaults from it, and the manual page
// urdma.json(5) is printed from it. It knows nothing of files or values.
//
// Beside the keywords of draft-07, which let a validator ignore unknown ones,
// each property carries "unit" (what a number counts), "allowed" (in words,
// where a pattern would be unreadable) and "computed" (where the default is
// no constant).
package schema

import _ "embed"

// JSON is the text of urdma-schema.json. It must not be changed.
//
//go:embed urdma-schema.json
var JSON []byte
