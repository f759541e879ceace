package main

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"os"

	"urdma/config"
	"urdma/inspect"
	"urdma/urdma/doctor"
	"urdma/urdma/report"

	"github.com/spf13/cobra"
)

// doctorOptions are the flags of urdma doctor.
type doctorOptions struct {
	lookOptions
	config, lib string
	cards       bool
	unitConfig  string // file of the unit that has failed; "" if none has
}

func newDoctor() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor [-- PROGRAM]",
		Short: "say why something might not work here, and what to do",
		Long: "Check everything that RDMA through urdmad depends on: the running urdmad and its version, its ports " +
			"and their links; the capabilities, interfaces and MTUs that the configuration's ports need; network " +
			"cards; the kernel; limits; and, with PROGRAM, whether the library " +
			"can be preloaded into it. A problem prevents something from working; a note is information. The " +
			"configuration is the one of --config, of the running urdmad, or of a systemd unit that has failed. Exits with status 1 if there is a " +
			"problem.\n\n--cards adds, for each network card of the kernel, the command that hands it to urdmad. The kernel " +
			"then has the card no longer: connections through it end, and if it is the machine's only one so does ssh.",
		Example: "  urdma doctor\n  urdma doctor --cards\n  urdma doctor --config urdma.json\n  urdma doctor -- ib_send_bw",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			facts, err := o.facts(args)
			if err != nil {
				return err
			}
			list := doctor.Examine(facts)
			if o.json {
				err = report.PrintJSON(cmd.OutOrStdout(), list)
			} else {
				err = doctor.Print(cmd.OutOrStdout(), list)
			}
			if n := doctor.Problems(list); err == nil && n > 0 {
				return fmt.Errorf("%d of %d things looked at are a problem", n, len(list))
			}
			return err
		},
	}
	o.addSocket(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.config, "config", "c", "",
		"configuration `FILE` to compare with this machine (default: the running urdmad's)")
	f.StringVar(&o.lib, "lib", "", "`PATH` of liburdma.so (default: as urdma exec finds it)")
	f.BoolVar(&o.cards, "cards", false, "print the commands that take network cards away from the kernel for urdmad")
	f.BoolVar(&o.json, "json", false, "print the findings as a JSON array")
	return cmd
}

func (o *doctorOptions) facts(args []string) (*doctor.Facts, error) {
	f := &doctor.Facts{Version: version, Commands: o.cards, Machine: os.Geteuid() == 0,
		Places: config.SocketPlaces(), Socket: config.FindSocket()}
	if o.socket != "" {
		f.Socket, f.Places = o.socket, []string{o.socket}
	}
	f.Daemon, f.NoDaemon = (&lookOptions{socket: f.Socket}).fetch()
	switch err := f.NoDaemon; {
	case errors.Is(err, inspect.ErrStale):
		f.NoDaemon = fmt.Errorf("%w; %w", inspect.ErrNotRunning, inspect.ErrStale)
	case errors.Is(err, inspect.ErrNotRunning):
		f.NoDaemon = inspect.ErrNotRunning
	}
	if f.Daemon == nil {
		if failed := failedUnit(cmp.Or(o.socket, os.Getenv("URDMA_SOCKET")), 0); failed != nil {
			f.Unit, f.Machine, o.unitConfig = failed, !failed.user, failed.config()
		}
	}
	o.readConfig(f)
	f.Library, f.LibraryError = findLibrary(o.lib)
	if len(args) == 1 {
		path, err := findProgram(args[0])
		if err != nil {
			return nil, err
		}
		f.Program = aboutProgram(path, f.Library)
	}
	doctor.Gather(f)
	return f, nil
}

// readConfig reads the file of --config, or the one that the running urdmad was started with, or the built-in
// default.
func (o *doctorOptions) readConfig(f *doctor.Facts) {
	file := o.config
	f.Planned = file != ""
	if file == "" && f.Daemon != nil && f.Daemon.Daemon.Config != config.Default().Source {
		file = f.Daemon.Daemon.Config
	}
	if file == "" {
		file = o.unitConfig
	}
	if file == "" {
		f.Config = config.Default()
		return
	}
	f.Config, f.ConfigError = config.LoadStrict(file)
}

func aboutProgram(path, lib string) *doctor.Program {
	p := &doctor.Program{Path: path}
	if lib != "" {
		p.Refusal = checkPreloadable(path, lib)
	}
	binary, err := followScripts(path)
	if err != nil {
		binary = path
	}
	var libraries []string
	if e, err := elf.Open(binary); err == nil {
		libraries, _ = e.ImportedLibraries() // none in a static program
		e.Close()
	}
	p.Path = binary
	p.LookAt(libraries)
	return p
}
