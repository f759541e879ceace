// Package metrics exports snapshots (package inspect) to Prometheus.
//
// families.go names every metric and the source of its value, collector.go gathers a snapshot for
// each scrape, server.go serves them over HTTP. Names follow
// https://prometheus.io/docs/practices/naming/: base units, and the suffix _total for counters.
// No metric has a label for a process or queue pair: such labels would grow without limit, and
// would tell strangers which programs run.
package metrics
