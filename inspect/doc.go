// Package inspect is urdmad's report about itself: the snapshot that the control message INSPECT returns as JSON,
// and the client that requests it.
//
// snapshot.go holds the types, which urdmad fills and urdma prints; fetch.go is the client; sums.go adds the counts
// of several ports or queue pairs. The package knows neither how urdmad collects a snapshot nor how urdma shows it.
package inspect
