// Package systemd talks to the service manager that started urdmad: it reports readiness and status and feeds the
// watchdog (sd_notify(3)), takes over the control socket (sd_listen_fds(3)), and sends log lines with fields to the
// journal (sd_journal_send(3)). The unit files are in the same folder.
//
// It knows nothing of ports, clients or configuration: callers pass texts, counters and log records. Outside
// systemd everything here does nothing, at no cost.
package systemd
