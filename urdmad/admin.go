package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// reloadRequest asks run to reload the configuration.
type reloadRequest struct{ done chan<- reloaded }

type reloaded struct {
	text string
	err  error
}

var errStopping = errors.New("urdmad is starting or stopping")

// askReload makes run reload the configuration, and waits for the result.
func (d *daemon) askReload() (string, error) {
	done := make(chan reloaded, 1)
	select {
	case d.reloads <- reloadRequest{done}: // run will answer
		r := <-done
		return r.text, r.err
	case <-d.ended:
		return "", errStopping
	}
}

func (d *daemon) setLogLevel(name string) (string, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return "", err
	}
	before := d.log.level.Level()
	d.log.level.Set(level)
	d.log.Log(context.Background(), max(level, slog.LevelInfo), "the log level was changed by a user", "from", before,
		"to", level)
	return fmt.Sprintf("urdmad logs lines of level %s and above, before: %s", level, before), nil
}
