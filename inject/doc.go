// Package inject is the language in which urdma inject, URDMA_INJECT and scenario files
// say what is to go wrong on purpose, and the drawing of chances. parse.go reads it,
// strict.go has the behaviours of urdma exec --strict, names.go the names of
// libibverbs's and the kernel's numbers, rule.go decides when a rule hits: from what it
// has seen and its seed, so that the same events meet the same fate.
//
// It must not know what is failed, nor clocks, sockets, queue pairs.
package inject
