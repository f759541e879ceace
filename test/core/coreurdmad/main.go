// Command coreurdmad is urdmad without any attached feature: it serves the programs of this machine on the ports of a
// urdma.json. Its imports are the core's needs. Tests run programs on it if URDMA_DAEMON names it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"urdma/config"
	"urdma/urdmad/control"
	"urdma/urdmad/core/worker"
	"urdma/urdmad/serve"
	"urdma/verbs/abi"
)

func main() {
	file := flag.String("config", "", "configuration `FILE`, see urdma.json(5); without, one loopback port")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	if err := run(ctx, *file); err != nil {
		fmt.Fprintln(os.Stderr, "coreurdmad:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cfg := config.Default()
	if file != "" {
		var err error
		if cfg, err = config.Load(file, func(warning string) { log.Warn("configuration: " + warning) }); err != nil {
			return err
		}
	}
	c := &serve.Core{Config: cfg, Log: log}
	worker.PrepareRuntime(c.Workers())
	err := start(c)
	if err == nil {
		worker.LimitGarbage()
		err = serveClients(ctx, c)
	}
	return errors.Join(err, c.Stop(), c.Close(), c.RemoveSysfs())
}

func start(c *serve.Core) error {
	for _, step := range []func() error{c.Open, c.MakeWorkers, c.StartWorkers, c.WriteSysfs} {
		if err := step(); err != nil {
			return err
		}
	}
	c.Links.Watch(c.ShowLink)
	c.Server.Attach(&control.Hooks{Answered: tellListener}, nil)
	return nil
}

// tellListener logs a listener, so that test/lab knows that a server waits for its client. With a whole urdmad, urdma
// show is asked instead.
func tellListener(x *control.Session, a control.Answered) {
	if a.Type == abi.CMListen && a.Err == nil {
		x.Server().Log.Info("a program listens", "pid", x.Owner.PID)
	}
}

// serveClients serves clients until ctx or a worker ends.
func serveClients(ctx context.Context, c *serve.Core) error {
	if err := config.MakeSocketDir(c.Config.Socket, config.NoGroup); err != nil {
		return err
	}
	l, err := control.Listen(c.Config.Socket, 0o600)
	if err != nil {
		return err
	}
	defer l.Close()
	c.Background.Go(func() { _ = c.Server.Serve(l) }) // ends with the listener
	c.Log.Info("urdmad is ready", "socket", c.Config.Socket, "ports", len(c.Ports))
	select {
	case <-ctx.Done():
		return nil
	case p := <-c.Ended():
		return errors.Join(errors.New("a worker has ended"), p.Worker.Stop())
	}
}
