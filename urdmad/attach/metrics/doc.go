// Package metrics shows snapshots (package inspect) to Prometheus.
//
// families.go names every metric and says where its value comes from,
// collector.go gathers a snapshot for each scrape, server.go serves them over
// HTTP. Names follow https://prometheus.io/docs/practices/naming/: base units,
// _total for what only grows. Nothing here is by process or queue pair: such
// labels would come and go without end, and tell strangers which programs run.
package metrics
