// Package logs writes log lines without delaying the threads that log. The poll loop logs, too, often because of a
// stranger's packet: Limit bounds the number of lines of each kind, and Queue accepts lines without waiting for
// their reader.
package logs
