package engine

import (
	"runtime"
	"strings"
)

// This file decides whether a panic, which is a bug of urdmad, ends the process or only the client that was being
// served. docs/design/trust.md has the rule and its reasons.

// perClient lists the packages whose state belongs to one queue pair, message or packet, apart from the types in
// ofWorker. If one of them panics, the state of other clients is whole.
var perClient = map[string]bool{
	"urdma/wire": true, "urdma/wire/roce": true, "urdma/verbs/ring": true,
	"urdma/urdmad/core/qp": true, "urdma/urdmad/core/trp": true, "urdma/urdmad/core/reliable": true,
	"urdma/urdmad/core/rdmap": true, "urdma/urdmad/core/mpa": true, "urdma/urdmad/core/roce": true,
	"urdma/urdmad/core/rc": true, "urdma/urdmad/core/samehost": true, "urdma/urdmad/core/datagram": true,
	"urdma/urdmad/core/rawpacket": true, "urdma/urdmad/core/pingpong": true,
}

// ofWorker lists receivers of methods, as they are in names of functions, whose state all clients of the worker share.
var ofWorker = []string{"(*runQueue).", "(*bufferPool).", "(*chunkPool).", "(*pool)."}

const core = "urdma/urdmad/core/"

// inClientState reports whether the innermost function of the core or of wire on the stack, which has panicked or has
// called what has, works on the state of one client.
func inClientState() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])]) // without those from Callers to fault.Guard's own
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		name, method := splitFunction(f.Function)
		switch {
		case perClient[name]:
			for _, receiver := range ofWorker {
				if strings.HasPrefix(method, receiver) {
					return false
				}
			}
			return true
		case strings.HasPrefix(name, core):
			return false
		}
	}
	return false
}

// splitFunction splits the full name of a function into its package and the rest.
func splitFunction(full string) (pkg, rest string) {
	slash := strings.LastIndexByte(full, '/') + 1
	dot := strings.IndexByte(full[slash:], '.')
	if dot < 0 {
		return full, ""
	}
	return full[:slash+dot], full[slash+dot+1:]
}
