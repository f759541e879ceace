// Package inject parses the statements of urdma inject, URDMA_INJECT and scenario files, which say what is to fail
// on purpose, and decides by chance when a rule hits. parse.go is the parser, strict.go the behaviours of urdma
// exec --strict, names.go the names of libibverbs's and the kernel's constants. rule.go decides by the events seen
// and a seed when a rule hits: the same events always give the same result.
//
// It must not know clocks, sockets, queue pairs, nor the code that fails.
package inject
