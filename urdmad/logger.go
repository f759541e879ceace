package main

import (
	"log/slog"
	"os"

	"urdma/config"
	"urdma/systemd"
)

// logs is where urdmad's lines go.
type logs struct {
	*slog.Logger
	level slog.LevelVar // a reload changes it
	close func()        // sends what still waits
}

// openLogs opens what log_format says: the journal, or text or JSON on
// standard error. "auto" is the journal where standard error leads there: a
// unit that sends it elsewhere (StandardError=) gets its lines there.
func openLogs(cfg *config.Config) *logs {
	l := &logs{close: func() {}}
	l.level.Set(levelOf(cfg))
	o := &slog.HandlerOptions{Level: &l.level}
	wanted := cfg.LogFormat == "journal"
	switch {
	case (wanted || cfg.LogFormat == "auto" && systemd.StderrIsJournal()) && systemd.JournalRuns():
		j := systemd.OpenJournal()
		l.close = j.Close
		l.Logger = slog.New(j.Handler(&l.level))
	case cfg.LogFormat == "json":
		l.Logger = slog.New(slog.NewJSONHandler(os.Stderr, o))
	default:
		l.Logger = slog.New(slog.NewTextHandler(os.Stderr, o))
		if wanted {
			l.Warn("log_format is \"journal\", and there is no journal: lines go to standard error")
		}
	}
	return l
}

func levelOf(cfg *config.Config) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return slog.LevelInfo // the schema lets no other names through
	}
	return level
}
