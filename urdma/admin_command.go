package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"urdma/verbs/abi"

	"github.com/spf13/cobra"
)

// administer asks urdmad to carry out an operation and prints the result.
func (o *lookOptions) administer(cmd *cobra.Command, op uint32, object uint64, text string) error {
	s, err := o.open()
	if err != nil {
		return err
	}
	defer s.Close()
	done, err := s.Administer(op, object, text)
	switch {
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("%w: this is for urdmad's own user and root", err)
	case errors.Is(err, syscall.ENOENT):
		return errors.New("there is none of this ID, or it is not yours to end")
	case err != nil:
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
	return err
}

func newReload() *cobra.Command {
	var o lookOptions
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "let urdmad read its configuration again",
		Long: "Read urdmad's configuration again, as SIGHUP does, and print which settings were applied and which " +
			"need a restart. No connection is broken. If the configuration is wrong, nothing changes, and the exit " +
			"status is 1. Only urdmad's own user and root may do this.",
		Example: "  urdma reload\n  sudo urdma reload --socket /run/urdma/urdmad.sock",
		Args:    usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.administer(cmd, abi.AdminReload, 0, "") },
	}
	o.addSocket(cmd)
	return cmd
}

var logLevels = []string{"debug", "info", "warn", "error"}

func newLog() *cobra.Command {
	var o lookOptions
	all := strings.Join(logLevels, ", ")
	cmd := &cobra.Command{
		Use:   "log LEVEL",
		Short: "change how much a running urdmad logs",
		Long: "Have urdmad log lines of LEVEL and above: " + all +
			". It lasts until urdmad ends or a reload changes log_level. For urdmad's own user and root.",
		Example:   "  urdma log debug",
		Args:      usage(cobra.ExactArgs(1)),
		ValidArgs: logLevels,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, l := range logLevels {
				if args[0] == l {
					return o.administer(cmd, abi.AdminLogLevel, 0, l)
				}
			}
			return withStatus(exitUsage, fmt.Errorf("the level is %q, allowed: %s", args[0], all))
		},
	}
	o.addSocket(cmd)
	return cmd
}

func newEnd() *cobra.Command {
	var o lookOptions
	cmd := &cobra.Command{
		Use:   "end qp|client ID",
		Short: "end a queue pair or a client of a running urdmad",
		Long: "End a queue pair, named by the number that urdma show qp prints, or a client, named by the CLIENT column " +
			"of urdma show client. " +
			"The queue pair moves to the error state: its program gets IBV_EVENT_QP_FATAL and what was posted is flushed. " +
			"For the client it is as if urdmad had ended; the process goes on. For the owner of the process, urdmad's own " +
			"user and root.",
		Example:   "  urdma end qp 871cec\n  urdma end client 12",
		Args:      usage(cobra.ExactArgs(2)),
		ValidArgs: []string{"qp", "client"},
		RunE: func(cmd *cobra.Command, args []string) error {
			op, base, bits := uint32(abi.AdminEndQP), 16, 24
			switch args[0] {
			case "qp":
			case "client":
				op, base, bits = abi.AdminEndClient, 10, 64
			default:
				return withStatus(exitUsage, fmt.Errorf("%q can't be ended, allowed: qp, client", args[0]))
			}
			id, err := strconv.ParseUint(strings.TrimPrefix(args[1], "0x"), base, bits)
			if err != nil {
				return withStatus(exitUsage, fmt.Errorf("the ID is %q, expected one that urdma show %s prints (%w)", args[1],
					args[0], errors.Unwrap(err)))
			}
			return o.administer(cmd, op, id, "")
		},
	}
	o.addSocket(cmd)
	return cmd
}
