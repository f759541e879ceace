// Command urdma is the command line of urdmad: it starts programs on urdmad's devices (exec) or on a urdmad of
// their own (run), looks inside a running urdmad (status, show, top), and checks, shows and creates configuration
// files (config).
//
// It keeps no state and starts nothing that outlives it: exec becomes the program, run stops its urdmad. A test (go
// test ./urdma -update) prints its manual page and the one of urdma.json from the commands and the schema.
package main
