// Package private runs urdmads that belong to one command: urdma run. It owns
// their processes, their directory and their end. It must not know what the
// command's programs are started with.
package private
