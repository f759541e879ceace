// Package private runs urdmads that belong to a single command, urdma run. It owns their processes, their directory
// and their end. It must not know how the command's programs are started.
package private
