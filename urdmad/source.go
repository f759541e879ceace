package main

import (
	"errors"
	"fmt"
	"io/fs"

	"urdma/config"
)

// source says where the configuration comes from, at the start and at each reload.
type source struct {
	file     string
	vdev     string   // "udp" or "tcp" if there is no file: one port over the kernel's sockets
	optional bool     // a missing file means the default configuration
	ealArgs  []string // from the command line; added after those of the file

	responder string // replaces the configured value; "": not set
	socket    string // replaces the configured value; "": not set
}

// defaultSocketPort is the UDP port of --udp and --tcp without a number.
const defaultSocketPort = "30035"

// setVdev evaluates the flags --udp and --tcp, with their port numbers. At most one of them may
// be given, and no configuration file with it.
func (s *source) setVdev(udp, tcp string, configured bool) error {
	name, number := "udp", udp
	switch {
	case udp != "" && tcp != "":
		return errors.New("--udp and --tcp are both given, expected one: a tcp port has a UDP socket too")
	case udp == "" && tcp == "":
		return nil
	case tcp != "":
		name, number = "tcp", tcp
	}
	s.vdev = name
	if number != defaultSocketPort {
		s.vdev += ",port=" + number
	}
	if _, err := config.ParseVdev(s.vdev); err != nil {
		return fmt.Errorf("--%s=%s: expected a port number from 1 to 65535", name, number)
	}
	if configured {
		return fmt.Errorf("--%s and a configuration are both given, expected one; \"vdev\": %q in the configuration does the same", name, s.vdev)
	}
	return nil
}

// notRead warns of the file that the user's unit would read: urdmad by itself reads only what --config names. A urdmad
// with a socket of its own (urdma run) has nothing to do with that file.
func (s source) notRead(warnings []string) []string {
	file := config.UserFile()
	if file == "" || s.socket != "" {
		return warnings
	}
	return append(warnings, fmt.Sprintf("%s is not read: only systemd's unit reads it by itself; use urdmad --config %s",
		file, file))
}

// load reads the configuration and its warnings.
func (s source) load() (cfg *config.Config, warnings []string, err error) {
	switch {
	case s.vdev != "":
		cfg = config.DefaultSockets(s.vdev)
	case s.file == "":
		cfg = config.Default()
		warnings = s.notRead(warnings)
	default:
		cfg, err = config.Load(s.file, func(w string) { warnings = append(warnings, w) })
		if s.optional && errors.Is(err, fs.ErrNotExist) {
			cfg, err = config.Default(), nil
		}
	}
	if err != nil {
		return nil, warnings, configError{err}
	}
	if s.responder != "" {
		if err := cfg.SetResponder(s.responder, "--responder"); err != nil {
			return nil, warnings, configError{err}
		}
	}
	if s.socket != "" {
		if err := cfg.SetSocket(s.socket, "--socket"); err != nil {
			return nil, warnings, configError{err}
		}
	}
	if err := cfg.CheckCores(config.Cores()); err != nil {
		return nil, warnings, configError{err}
	}
	warnings = append(warnings, cfg.Warnings()...)
	cfg.EALArgs = append(cfg.EALArgs, s.ealArgs...)
	return cfg, warnings, nil
}
