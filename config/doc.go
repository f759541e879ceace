// Package config loads urdma.json.
//
// A file passes three doors, in this order. The strict decode (strict.go)
// refuses what JSON readers disagree about: bytes that are not UTF-8,
// duplicate keys, anything after the end, numbers out of range; it notes the
// line of each value. The schema (validate.go, package schema) refuses wrong
// types, ranges and forms. The rules (rules.go) refuse what a schema can't
// say: two ports with one address, a gateway outside the network. Past them
// gjson reads the values (read.go) and trusts them.
//
// Each error names the file, the JSON path, the line, what was found and what
// is allowed. An unknown property is an error to Check and a warning to Load.
//
// The package opens no port and changes no file, with one exception:
// MakeSocketDir, which makes the control socket's directory.
package config
