// Package schema holds the JSON Schema (draft-07) of urdma.json and reads it as a list of properties. It is the
// only place that says which settings exist, which values they may have and what their defaults are. Package config
// validates files against it and takes its defaults from it; the manual page urdma.json(5) is printed from it. It
// knows nothing of files or values.
//
// Each property has three keywords beyond draft-07 (a validator may ignore unknown keywords): "unit" (of a number),
// "allowed" (allowed values in words, if a pattern would be unreadable) and "computed" (how the default is
// determined, if it is no constant).
package schema

import _ "embed"

// JSON is the text of urdma-schema.json. It must not be changed.
//
//go:embed urdma-schema.json
var JSON []byte
