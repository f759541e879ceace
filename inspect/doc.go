// Package inspect is what urdmad tells about itself: the snapshot that the
// control message INSPECT returns as JSON, and the client that asks for it.
//
// snapshot.go holds the types, which urdmad fills and urdma prints; fetch.go
// asks a running urdmad; rates.go compares two snapshots. It knows neither how
// a snapshot is gathered nor how it is shown.
package inspect
