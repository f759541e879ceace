// Package snapshot answers INSPECT: it gathers what urdmad's workers have into a snapshot (package
// inspect), turn by turn, so that packets are not kept waiting. Other features add their parts.
package snapshot
