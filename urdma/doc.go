// Command urdma is the companion of urdmad: it starts programs on urdmad's
// devices (exec) or on a urdmad of their own (run), looks inside a running
// urdmad (status, show, top), and checks, shows and starts configuration files
// (config).
//
// It keeps no state and starts nothing that outlives it: exec becomes the
// program, run stops its urdmad. Its manual page, and that of urdma.json, are
// printed from the commands and the schema themselves by a test (go test ./urdma
// -update).
package main
