// Command urdmad owns the ports of urdma.json and serves RDMA to the programs
// of this machine. See docs/man/urdmad.8 and docs/ARCHITECTURE.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"urdma/config"
)

// version is set by the linker: -X main.version=1.2.3.
var version = "0.1.0-dev"

// Exit statuses: 1 for what went wrong while running or starting, 2 for a
// configuration or command line that is wrong.
const (
	exitFailed = 1
	exitConfig = 2
)

// configError marks errors of the configuration or the command line.
type configError struct{ error }

func (e configError) Unwrap() error { return e.error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	err := command().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "urdmad:", err)
	var wrong configError
	if errors.As(err, &wrong) {
		os.Exit(exitConfig)
	}
	os.Exit(exitFailed)
}

func command() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:           "urdmad [--config FILE] [-- EAL-ARGUMENT...]",
		Short:         "userspace RDMA daemon",
		Long:          "urdmad owns the ports of urdma.json and serves RDMA to the programs of this machine.\nWithout --config it serves one loopback port, with neither root nor hugepages.",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := load(file)
			if err != nil {
				return configError{err}
			}
			cfg.EALArgs = append(cfg.EALArgs, args...)
			return serve(cmd.Context(), cfg)
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return configError{err} })
	c.Flags().StringVarP(&file, "config", "c", "", "configuration `FILE`, see urdma.json(5)")
	return c
}

func load(file string) (*config.Config, error) {
	if file == "" {
		return config.Default(), nil
	}
	return config.Load(file, func(warning string) { fmt.Fprintln(os.Stderr, "urdmad: warning:", warning) })
}
