// Package systemd is what urdmad says to the service manager that started it
// and takes from it: readiness, status and watchdog (sd_notify(3)), the socket
// that was opened in advance (sd_listen_fds(3)), and log lines with fields for
// the journal (sd_journal_send(3)). The units lie beside it.
//
// It knows nothing of ports, clients or configuration: callers hand it texts,
// counters and records. Outside systemd everything here does nothing, at no
// cost.
package systemd
