// Command urdmad owns the ports of urdma.json and serves RDMA to the programs
// of this machine. See docs/man/urdmad.8 and docs/ARCHITECTURE.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"urdma/systemd"
)

// Exit statuses: 1 for an error while running or starting, 2 for an invalid configuration or
// command line.
const (
	exitFailed = 1
	exitConfig = 2
)

// configError marks errors of the configuration or the command line.
type configError struct{ error }

func (e configError) Unwrap() error { return e.error }

// The main goroutine keeps the main thread, whose priority and cores renice(1) and taskset(1) take for those of the
// process. A worker changes its own thread's, and otherwise would sometimes get this one.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	err := command().ExecuteContext(ctx)
	if err == nil {
		return
	}
	complain(err)
	var wrong configError
	if errors.As(err, &wrong) {
		os.Exit(exitConfig)
	}
	os.Exit(exitFailed)
}

// complain reports why urdmad ended: on standard error, with a priority if that is the journal
// (sd-daemon(3)), and to the service manager.
func complain(err error) {
	prefix := "urdmad: "
	if systemd.StderrIsJournal() {
		prefix = "<3>"
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		fmt.Fprintln(os.Stderr, prefix+line)
	}
	_ = systemd.Failed(err) // a failure cannot be reported anywhere
}

// warn prints the warnings of a configuration that also has errors; there is no log yet.
func warn(warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(os.Stderr, "urdmad: warning: "+w)
	}
}

func command() *cobra.Command {
	var src source
	var optional string
	var udp, tcp string
	c := &cobra.Command{
		Use:   "urdmad [--config FILE | --udp | --tcp] [-- EAL-ARGUMENT...]",
		Short: "userspace RDMA daemon",
		Long: "urdmad owns the ports of urdma.json and serves RDMA to the programs of this machine.\n" +
			"Without --config it has one loopback port, and needs neither root nor hugepages.",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := src.setVdev(udp, tcp, src.file != "" || optional != ""); err != nil {
				return configError{err}
			}
			if optional != "" && src.file != "" {
				return configError{errors.New("--config and --config-if-exists are both given, expected one")}
			}
			if optional != "" {
				src.file, src.optional = optional, true
			}
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return configError{fmt.Errorf("%q: expected arguments for DPDK after --, and a configuration after --config",
					args[0])}
			}
			src.ealArgs = args
			return runDaemon(cmd.Context(), src)
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return configError{err} })
	c.Flags().StringVarP(&src.file, "config", "c", "", "configuration `FILE`, see urdma.json(5)")
	c.Flags().StringVar(&udp, "udp", "", "without a configuration: have one port, a UDP socket that also reaches other "+
		"machines, at port number 30035 or `PORT` (--udp=PORT), the same on all of them")
	c.Flags().StringVar(&tcp, "tcp", "", "like --udp[=`PORT`], but connections of rdma_cm use TCP: iWARP")
	for _, name := range []string{"udp", "tcp"} {
		c.Flags().Lookup(name).NoOptDefVal = defaultSocketPort
	}
	c.Flags().StringVar(&src.responder, "responder", "",
		"answer `WHAT` of other hosts: off, or ping (urdma ping) (default: as the configuration says)")
	c.Flags().StringVar(&src.socket, "socket", "", "`PATH` of the control socket (default: as the configuration says)")
	c.Flags().StringVar(&optional, "config-if-exists", "",
		"like --config, but without `FILE` urdmad runs as without --config")
	return c
}
