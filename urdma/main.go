package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"urdma/config"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// version and libDir are set by the build: -ldflags "-X main.version=…
// -X main.libDir=…".
var (
	version = "devel"
	libDir  = ""
)

// Exit statuses. exec uses those of env(1), so that a script can distinguish a program's failure from ours.
const (
	exitFailure   = 1
	exitUsage     = 2   // also for a bad configuration, like urdmad
	exitTimeout   = 124 // timeout(1)'s
	exitExec      = 125
	exitCannotRun = 126
	exitNotFound  = 127
)

// statusError is an error with the exit status for the command.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func withStatus(status int, err error) error {
	if err == nil {
		return nil
	}
	return &statusError{status, err}
}

func main() {
	root := newRoot()
	ran, err := root.ExecuteC()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, message(ran, err))
	os.Exit(exitStatus(ran, err))
}

// message returns the error text. Errors of a configuration file stay unchanged: each line begins with file and
// line number, as editors expect.
func message(ran *cobra.Command, err error) string {
	if isConfigError(err) {
		return err.Error()
	}
	return ran.CommandPath() + ": " + err.Error()
}

func isConfigError(err error) bool {
	var one *config.Error
	var many config.Errors
	return errors.As(err, &one) || errors.As(err, &many)
}

func exitStatus(ran *cobra.Command, err error) int {
	var s *statusError
	switch {
	case errors.As(err, &s):
		return s.status
	case startsPrograms(ran):
		return exitExec
	case isConfigError(err):
		return exitUsage
	}
	return exitFailure
}

// startsPrograms reports whether a command's exit status is the status of a program that it starts.
func startsPrograms(cmd *cobra.Command) bool { return cmd.Name() == "exec" || cmd.Name() == "run" }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "urdma",
		Short: "run programs on urdmad, inspect it and manage its configuration",
		Long: "urdma is the command line of urdmad(8), the daemon that provides RDMA on machines without RDMA " +
			"hardware. It starts programs on urdmad's devices, shows what a running urdmad does, and checks, shows " +
			"and creates its configuration.",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usage(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("urdma {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		status := exitUsage
		if startsPrograms(cmd) {
			status = exitExec
		}
		return withStatus(status, fmt.Errorf("%w%s (%s --help tells more)", err, nearestFlag(cmd, err), cmd.CommandPath()))
	})
	root.AddCommand(newRun(), newExec(), newStatus(), newDoctor(), newShow(), newTop(),
		newPing(), newCapture(), newTrace(), newExplain(), newInject(), newReload(), newLog(), newEnd(),
		newConfig(), newVersion())
	return root
}

// nearestFlag asks whether a similar flag was meant; "" if none is similar or the error is another.
func nearestFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := config.Nearest(unknown.GetSpecifiedName(), names); near != "" {
		return fmt.Sprintf("; did you mean --%s?", near)
	}
	return ""
}

// usage reports a wrong number of arguments with exitUsage.
func usage(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := args(cmd, given); err != nil {
			if !cmd.HasSubCommands() {
				err = wrongCount(cmd, given)
			}
			cmd.SuggestionsMinimumDistance = 2
			if near := cmd.SuggestionsFor(first(given)); cmd.HasSubCommands() && len(near) > 0 {
				err = fmt.Errorf("%w; did you mean %q?", err, near[0])
			}
			return withStatus(exitUsage, fmt.Errorf("%w; use: %s", err, cmd.UseLine()))
		}
		return nil
	}
}

// wrongCount says which argument is missing, by its name in the command's usage, or that there are too many.
func wrongCount(cmd *cobra.Command, given []string) error {
	for i, name := range strings.Fields(cmd.Use)[1:] {
		if name[0] == '[' || name[0] == '-' {
			break // from here on arguments may be left out
		}
		if i >= len(given) {
			return fmt.Errorf("%s is missing", name)
		}
	}
	return fmt.Errorf("too many arguments, the last is %q", given[len(given)-1])
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Long:  "Print the version of urdma.",
		Args:  usage(cobra.NoArgs),

		DisableFlagsInUseLine: true, // it has no flags
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "urdma %s\n", version)
			return err
		},
	}
}
