// Package snapshot answers INSPECT: it gathers the state of urdmad's workers into a snapshot
// (package inspect), a part in each turn, so that packets are not delayed. Other features add
// their parts.
package snapshot
