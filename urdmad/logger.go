package main

import (
	"log/slog"
	"os"

	"urdma/config"
	"urdma/systemd"
	"urdma/urdmad/logs"
)

// logger is the destination of urdmad's log lines.
type logger struct {
	*slog.Logger
	level slog.LevelVar // a reload changes it
	form  string        // text, json or journal
	close func()        // flushes pending lines
}

// openLogs opens the destination of log_format: the journal, or text or JSON on standard error.
// "auto" means the journal if standard error leads there; a unit that redirects standard error
// (StandardError=) gets the lines there.
func openLogs(cfg *config.Config) *logger {
	l := &logger{form: "text"}
	l.level.Set(levelOf(cfg))
	wanted := cfg.LogFormat == "journal"
	if (wanted || cfg.LogFormat == "auto" && systemd.StderrIsJournal()) && systemd.JournalRuns() {
		q := logs.NewQueue(systemd.Line.Send, systemd.SendLost)
		l.close, l.form = q.Close, "journal"
		l.Logger = slog.New(logs.NewLimit(logs.Hex{Handler: systemd.NewHandler(&l.level, q.Put)}))
		return l
	}
	q := logs.NewWriter(os.Stderr)
	l.close = q.Close
	o := &slog.HandlerOptions{Level: &l.level}
	var h slog.Handler = logs.Hex{Handler: slog.NewTextHandler(q, o)}
	if cfg.LogFormat == "json" {
		h, l.form = slog.NewJSONHandler(q, o), cfg.LogFormat
	}
	l.Logger = slog.New(logs.NewLimit(h))
	if wanted {
		l.Warn("log_format is \"journal\", and there is no journal: lines go to standard error")
	}
	return l
}

func levelOf(cfg *config.Config) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return slog.LevelInfo // the schema allows no other names
	}
	return level
}
