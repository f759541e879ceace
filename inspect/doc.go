// Package inspect is what urdmad tells about itself: the snapshot that the
// control message INSPECT returns as JSON, and the client that asks for it.
//
// snapshot.go holds the types, which urdmad fills and urdma prints; fetch.go
// asks a running urdmad; sums.go adds the counts of several ports or queue pairs.
// It knows neither how a snapshot is gathered nor how it is shown.
package inspect
