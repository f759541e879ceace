// Package config loads urdma.json.
//
// A file passes three checks, in this order. The strict decode (strict.go) refuses what JSON readers disagree
// about: bytes that are not UTF-8, duplicate keys, anything after the end, numbers out of range; it records the
// line of each value. The schema (validate.go, package schema) refuses wrong types, ranges and forms. The rules
// (rules.go) refuse what a schema can't express: two ports with one address, a gateway outside the network. After
// the checks gjson reads the values (read.go) and trusts them.
//
// Each error names the file, the JSON path, the line, the value found and the values allowed. An unknown property
// is an error for Check and a warning for Load.
//
// The package opens no port and changes no file, with one exception: MakeSocketDir creates the directory of the
// control socket.
package config
